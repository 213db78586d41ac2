"""A model's own chat template, as its makers ship it: in `chat_template.jinja` beside the
tokenizer, or in `tokenizer_config.json`.

The template is the operator's, and still runs in Jinja's sandbox. It never sees what a message
says: each text is a placeholder while it is rendered, so that nothing a customer writes can become
one of the template's own tokens.
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

_PLACEHOLDER: Final = re.compile("\ue000([0-9]+)\ue001")  # characters that no text needs


class ChatTemplateError(Exception):
    """The template does not take these messages, in this order."""


class ChatTemplate:
    def __init__(self, source: str, *, special_tokens: dict[str, str], clock: Clock) -> None:
        """Raises BadSetting when it is no template."""
        self._template = _compile(source, clock)
        self._special_tokens = special_tokens

    @property
    def end_token(self) -> str | None:
        return self._special_tokens.get("eos_token")

    def render(self, messages: Sequence[ChatMessage]) -> list[str | int]:
        """The prompt's pieces: the template's own text, and the index of a message where its text
        belongs. Ends where the assistant is to speak. Raises ChatTemplateError."""
        listed = [
            {"role": each.role, "content": f"\ue000{index}\ue001"}
            for index, each in enumerate(messages)
        ]
        try:
            text = self._template.render(
                messages=listed, add_generation_prompt=True, **self._special_tokens
            )
        except (TemplateError, TypeError, ValueError, AttributeError, LookupError):
            raise ChatTemplateError from None
        pieces = _PLACEHOLDER.split(text)
        return [int(piece) if index % 2 else piece for index, piece in enumerate(pieces)]


def load_chat_template(folder: str, clock: Clock) -> ChatTemplate | None:
    """None: the model has none, or the tokenizer is a name on the hub. Raises BadSetting."""
    config = _read_json(Path(folder) / "tokenizer_config.json")
    file = Path(folder) / "chat_template.jinja"
    source = file.read_text() if file.is_file() else _default(config.get("chat_template"))
    if source is None:
        return None
    names = ("bos_token", "eos_token", "pad_token", "unk_token")
    tokens = {name: text for name in names if (text := _token(config.get(name))) is not None}
    return ChatTemplate(source, special_tokens=tokens, clock=clock)


class _GenerationTag(Extension):
    """`{% generation %}` marks for training what the assistant says; here it changes nothing."""

    tags = {"generation"}  # noqa: RUF012  # as Jinja declares it

    def parse(self, parser: Parser) -> list[Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _compile(source: str, clock: Clock) -> Template:
    def now(form: str) -> str:
        return datetime.fromtimestamp(clock.now_ms() / 1000, UTC).strftime(form)

    # As the transformers library sets it up, by which templates are written.
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.loopcontrols", _GenerationTag],
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = now
    try:
        return environment.from_string(source)
    except TemplateSyntaxError as error:
        raise BadSetting(f"The model's chat template cannot be read: {error.message}.") from error


def _to_json(value: Any, indent: int | None = None) -> str:
    # Jinja's own would escape for HTML.
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(_message: str) -> None:
    raise TemplateError("refused")


def _default(template: Any) -> str | None:
    """A text, or several by name, of which one is the default."""
    if isinstance(template, str):
        return template
    named = {each["name"]: each["template"] for each in template or []}
    return named.get("default")


def _token(token: Any) -> str | None:
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else None


def _read_json(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        config: dict[str, Any] = json.loads(file.read_text())
    except ValueError as error:
        raise BadSetting(f"{file} is no JSON.") from error
    return config
