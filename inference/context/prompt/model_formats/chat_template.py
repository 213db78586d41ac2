"""A model's chat template, from `chat_template.jinja` or `tokenizer_config.json`.

The operator installs the template, but it still runs in Jinja's sandbox. It never receives the text
of a message: a placeholder stands for each text. So customers' text cannot become a special token.
"""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from jinja2 import Template, TemplateError, TemplateSyntaxError
from jinja2.ext import Extension
from jinja2.nodes import Node
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from caret.foundation.clock import Clock
from caret.foundation.environment import BadSetting
from inference.completion.incoming_request import ChatMessage

_PLACEHOLDER: Final = re.compile("\ue000([0-9]+)\ue001")  # private-use characters


class ChatTemplateError(Exception):
    """The template rejects these messages or their order."""


class ChatTemplate:
    def __init__(self, source: str, *, special_tokens: dict[str, str], clock: Clock) -> None:
        """Compile the template. Raises BadSetting."""
        self._template = _compile(source, clock)
        self._special_tokens = special_tokens

    @property
    def end_token(self) -> str | None:
        """The token that ends the assistant's turn; None: the model's configuration names none."""
        return self._special_tokens.get("eos_token")

    def render(self, messages: Sequence[ChatMessage]) -> list[str | int]:
        """Return the pieces of the rendered template.

        A string is the template's own text. A number is the index of the message whose text belongs
        there. The result ends where the assistant's turn begins. Raises ChatTemplateError.
        """
        placeholders = [
            {"role": message.role, "content": f"\ue000{index}\ue001"}
            for index, message in enumerate(messages)
        ]
        try:
            text = self._template.render(
                messages=placeholders, add_generation_prompt=True, **self._special_tokens
            )
        except (TemplateError, TypeError, ValueError, AttributeError, LookupError):
            raise ChatTemplateError from None
        # `split` alternates between texts and the placeholders' indexes.
        pieces = _PLACEHOLDER.split(text)
        return [int(piece) if index % 2 else piece for index, piece in enumerate(pieces)]


def load_chat_template(folder: str, clock: Clock) -> ChatTemplate | None:
    """Return the model's template; None: it has none, or `folder` is a name on Hugging Face's hub.

    Raises BadSetting.
    """
    config = _read_json(Path(folder) / "tokenizer_config.json")
    file = Path(folder) / "chat_template.jinja"
    source = file.read_text() if file.is_file() else _default_template(config.get("chat_template"))
    if source is None:
        return None
    names = ("bos_token", "eos_token", "pad_token", "unk_token")
    tokens = {name: text for name in names if (text := _token_text(config.get(name))) is not None}
    return ChatTemplate(source, special_tokens=tokens, clock=clock)


class _GenerationTag(Extension):
    """Ignores `{% generation %}`, which only marks the assistant's text for training."""

    tags = {"generation"}  # noqa: RUF012  # as Jinja declares it

    def parse(self, parser: Parser) -> list[Node]:
        next(parser.stream)  # the name of the tag
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _compile(source: str, clock: Clock) -> Template:
    def now(form: str) -> str:
        return datetime.fromtimestamp(clock.now_ms() / 1000, UTC).strftime(form)

    # Set up like the transformers library, for which templates are written.
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.loopcontrols", _GenerationTag],
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_template_error
    environment.globals["strftime_now"] = now
    try:
        return environment.from_string(source)
    except TemplateSyntaxError as error:
        raise BadSetting(f"The model's chat template cannot be read: {error.message}.") from error


def _to_json(value: Any, indent: int | None = None) -> str:
    # Jinja's own filter escapes for HTML.
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise_template_error(_message: str) -> None:
    raise TemplateError("refused")


def _default_template(template: Any) -> str | None:
    """Return the only template, or the default of a list of named ones; None: there is neither."""
    if isinstance(template, str):
        return template
    templates = {entry["name"]: entry["template"] for entry in template or []}
    return templates.get("default")


def _token_text(token: Any) -> str | None:
    """Return the text of a token, which is declared as a string or as an object."""
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else None


def _read_json(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        config: dict[str, Any] = json.loads(file.read_text())
    except ValueError as error:
        raise BadSetting(f"{file} is not valid JSON.") from error
    return config
