"""Reads request bodies, for all dialects.

Unknown fields are ignored. Stop strings that are markers of a model family are dropped: plugins of
editors list them, and a marker ends every completion anyway.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeVar

import msgspec

from caret.contracts.policy import Mode, Trigger
from inference.completion.generation_options import GREEDY, Sampling
from inference.completion.incoming_request import ContextFile, UnvalidatedRequest
from inference.context.prompt.model_formats.fim_parser import ParsedFile, parse_fim_prompt
from inference.context.prompt.model_formats.model_families import ALL_MARKERS
from inference.context.prompt.model_formats.path_comments import parse_path_comments
from inference.errors import BadRequest
from inference.gateway.bad_fields import name_bad_field
from inference.gateway.receive import MAX_STOPS, check_prompt

Body = TypeVar("Body")
Stops = str | list[str] | None

MAX_PROMPTS: Final = 20  # in one request; LangChain sends up to 20
_MAX_LISTED_STOPS: Final = 256  # further stop strings are ignored; plugins list a dozen

_CHAT_MARKERS: Final = frozenset({"<|im_start|>", "<|im_end|>", "<end_of_turn>"})
# Some tokenizers' markers begin with "▁". Plugins leave it out.
_SHORT_SPELLINGS: Final = frozenset(marker.lstrip("▁") for marker in ALL_MARKERS)
_MARKERS: Final = ALL_MARKERS | _SHORT_SPELLINGS | _CHAT_MARKERS


def decode(decoder: msgspec.json.Decoder[Body], body: bytes) -> Body:
    """Decode a body.

    The codes of BadRequest are `invalid_field` and `invalid_json`. Raises BadRequest.
    """
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        field = name_bad_field(error)
        message = f"{field or 'A required field'} is missing or malformed."
        raise BadRequest("invalid_field", message, param=field or None) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise BadRequest("invalid_json", "The body is not valid JSON.") from None


def read_limit(limit: int | None) -> tuple[int | None, bool]:
    """Return the limit of tokens, and whether the request only warms up the prefix cache.

    0 means that the client wants no completion. The receive stage replaces None and a negative
    limit by the mode's default.
    """
    return (None, True) if limit == 0 else (limit, False)


def build_sampling(temperature: float | None, top_p: float | None, seed: int | None) -> Sampling:
    """Build the sampling. Without a temperature, or with 0, decoding is greedy."""
    return Sampling(
        temperature=temperature or GREEDY.temperature,
        top_p=GREEDY.top_p if top_p is None else top_p,
        seed=seed,
    )


def refuse_if(name: str, is_requested: object) -> None:
    """Refuse the parameter `name` if the client requested its effect.

    The code of BadRequest is `unsupported_parameter`. Raises BadRequest.
    """
    if is_requested:
        raise BadRequest(
            "unsupported_parameter", f"{name} is not supported. Leave it out.", param=name
        )


def read_prompts(prompt: str | list[str]) -> list[str]:
    """Return the prompts, from 1 to MAX_PROMPTS. Raises BadRequest."""
    if isinstance(prompt, str):
        return [prompt]
    if not 1 <= len(prompt) <= MAX_PROMPTS:
        message = f"prompt must have 1 to {MAX_PROMPTS} texts."
        raise BadRequest("invalid_field", message, param="prompt")
    return prompt


def normalize_stops(stop: Stops) -> tuple[str, ...]:
    """Return the first MAX_STOPS distinct stop strings that are not markers.

    Generated text never contains markers, because they are tokens of their own. Plugins that list
    more stop strings also truncate the text themselves.
    """
    stops = [stop] if isinstance(stop, str) else stop or []
    considered_stops = stops[:_MAX_LISTED_STOPS]
    distinct_stops = dict.fromkeys(stop for stop in considered_stops if stop not in _MARKERS)
    return tuple(distinct_stops)[:MAX_STOPS]


def require_text(prompt: str, suffix: str | None) -> None:
    """Check that there is text before or after the cursor. Raises BadRequest."""
    if not prompt and not suffix:
        raise BadRequest("invalid_field", "prompt must not be empty.", param="prompt")


def build_fim_request(
    prompt: str,
    *,
    suffix: str | None,
    max_tokens: int | None,
    stop: tuple[str, ...],
    model: str = "",
) -> UnvalidatedRequest:
    """Build a fill-in-the-middle request from two texts or from a rendered prompt.

    If `suffix` is None, the prompt is parsed as a prompt that the client rendered for some model
    family. If it has the format of no family, it becomes a raw prompt: it is used unchanged.

    In a request that is not raw, the text before the cursor may begin with comments that the plugin
    Continue writes. They are removed, and the request gets the paths and files that they name. This
    is not done if a rendered prompt names a path or files in its family's format.

    If `max_tokens` is 0, the request only warms up the prefix cache.

    The code of BadRequest is `too_large`. Raises BadRequest.
    """
    limit, is_warm_up = read_limit(max_tokens)
    draft = UnvalidatedRequest(
        mode=Mode.FIM,
        prefix=prompt,
        suffix=suffix or "",
        max_tokens=limit,
        is_warm_up=is_warm_up,
        trigger=Trigger.PREFETCH if is_warm_up else Trigger.AUTOMATIC,
        stop=stop,
        model=model,
    )
    if suffix is not None:
        return _read_path_comments(draft)
    check_prompt(prompt)  # rejects prompts that would take too long to parse
    fim_prompt = parse_fim_prompt(prompt)
    if fim_prompt is None:
        return replace(draft, is_raw=True)
    draft = replace(
        draft,
        prefix=fim_prompt.prefix,
        suffix=fim_prompt.suffix,
        path=fim_prompt.path,
        repository=fim_prompt.repository,
        files=_to_context_files(fim_prompt.files),
    )
    return draft if draft.path or draft.files else _read_path_comments(draft)


def _read_path_comments(draft: UnvalidatedRequest) -> UnvalidatedRequest:
    commented_prompt = parse_path_comments(draft.prefix)
    return replace(
        draft,
        prefix=commented_prompt.text,
        possible_paths=commented_prompt.paths,
        files=_to_context_files(commented_prompt.files),
    )


def _to_context_files(files: Sequence[ParsedFile]) -> tuple[ContextFile, ...]:
    """Return the files in reverse order, so that the file nearest to the cursor is first.

    The receive stage keeps the order of files with equal times.
    """
    return tuple(ContextFile(file.path, file.text, edited_at=0.0) for file in reversed(files))
