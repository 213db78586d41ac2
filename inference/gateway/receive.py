"""The receive stage: validate a request, or raise an error for the client."""

from typing import Final

from caret.contracts.language_ids import LANGUAGES, language_of_path
from caret.contracts.policy import Mode, Trigger
from caret.contracts.pricing import MAX_CHAT_TOKENS, MAX_GENERATED_TOKENS
from inference.completion.edit import Diagnostic, RecentEdit
from inference.completion.generation_options import Sampling
from inference.completion.incoming_request import Definition, IncomingRequest, UnvalidatedRequest
from inference.completion.request import CompletionRequest
from inference.errors import BadRequest

# A file of 5,000 lines has about 200 KB. Text beyond these sizes could not reach the prompt anyway.
MAX_TEXT_CHARS: Final = 512 * 1024  # each of prefix and suffix
MAX_PROMPT_CHARS: Final = 2 * MAX_TEXT_CHARS  # of a raw prompt: prefix and suffix
MAX_MESSAGES: Final = 256  # of a chat
MAX_FILES: Final = 32
MAX_FILES_CHARS: Final = 4 * 1024 * 1024  # all other files together
MAX_NAME_CHARS: Final = 512  # paths, repository names
MAX_IMPORTS: Final = 40  # further ones are ignored
MAX_RECENT_EDITS: Final = 16
MAX_RECENT_EDITS_CHARS: Final = 8 * 1024  # all together, paths included
MAX_DEFINITIONS: Final = 16
MAX_DEFINITIONS_CHARS: Final = 8 * 1024  # all together, paths included
MAX_DIAGNOSTICS: Final = 16
MAX_DIAGNOSTIC_CHARS: Final = 500
MAX_LINE: Final = 2**31 - 1  # line number, as in the Language Server Protocol
MAX_STOPS: Final = 4  # stop texts; the engine's limit
MAX_STOP_CHARS: Final = 64
MAX_TOKENS: Final = MAX_GENERATED_TOKENS
MAX_ALTERNATIVE: Final = 16  # users do not look through more suggestions
# The sampling of alternatives. It gives texts that differ from each other, but are still code.
_TEMPERATURE: Final = 0.8
_TOP_P: Final = 0.95
MAX_TEMPERATURE: Final = 2.0  # as in OpenAI's protocol
MAX_SEED: Final = 2**63 - 1  # the engine's seed is a signed 64-bit integer

DEFAULT_MAX_TOKENS: Final = {
    Mode.INLINE: 64,
    Mode.FIM: 128,
    Mode.BLOCK: 256,
    Mode.DOCSTRING: 256,
    Mode.CHAT: 512,
    Mode.EDIT: 512,  # the answer repeats the lines that it does not change
}


def check_prompt(prompt: str) -> None:
    """Check the size of a raw prompt before it is parsed.

    The code of BadRequest is `too_large`. Raises BadRequest.
    """
    if len(prompt) > MAX_PROMPT_CHARS:
        raise _too_large(f"prompt must have at most {MAX_PROMPT_CHARS} characters.")


def receive(arrival: IncomingRequest) -> CompletionRequest:
    """Return the validated request.

    The codes of BadRequest are `unknown_mode`, `unknown_language`, `invalid_field` and `too_large`.
    Raises BadRequest.
    """
    draft = arrival.draft
    mode = _read_mode(draft.mode)
    if (mode is Mode.CHAT) != bool(draft.messages):
        raise BadRequest("invalid_field", "The mode chat requires messages; other modes have none.")
    _check_sizes(draft)
    _check_edit_fields(draft, mode)
    _check_definitions(draft.definitions, mode)
    _check_sampling(draft.sampling)
    # A warm-up only prefills its prompt. The engine must generate at least one token.
    max_tokens = 1 if draft.is_warm_up else _choose_max_tokens(draft.max_tokens, mode)
    return CompletionRequest(
        mode=mode,
        path=draft.path,
        language=_read_language(draft.language) or language_of_path(draft.path),
        prefix=draft.prefix,
        suffix=draft.suffix,
        files=tuple(sorted(draft.files, key=lambda file: -file.edited_at)),
        repository=draft.repository,
        max_tokens=max_tokens,
        stop=draft.stop,
        is_raw=draft.is_raw,
        messages=draft.messages,
        trigger=_read_trigger(draft.trigger),
        is_warm_up=draft.is_warm_up,
        model=draft.model[:MAX_NAME_CHARS],  # no model has a longer name
        imports=tuple(name[:MAX_NAME_CHARS] for name in draft.imports[:MAX_IMPORTS]),
        sampling=_choose_sampling(draft),
        time_limits=draft.time_limits,
        recent_edits=draft.recent_edits,
        diagnostics=draft.diagnostics,
        possible_paths=draft.possible_paths,
        definitions=draft.definitions,
    )


def _read_mode(text: str) -> Mode:
    try:
        return Mode(text)
    except ValueError:
        modes = ", ".join(Mode)
        raise BadRequest("unknown_mode", f"The mode is not one of {modes}.") from None


def _read_trigger(text: str) -> Trigger:
    try:
        return Trigger(text)
    except ValueError:
        triggers = ", ".join(Trigger)
        raise BadRequest("invalid_field", f"The trigger is not one of {triggers}.") from None


def _read_language(text: str) -> str:
    language = text.lower()
    if language and language not in LANGUAGES:
        raise BadRequest(
            "unknown_language", "The language identifier is unknown; leave it out if in doubt."
        )
    return language


def _choose_sampling(draft: UnvalidatedRequest) -> Sampling:
    """Return the client's sampling, or the fixed sampling of an alternative.

    The number of the alternative is the seed.
    """
    if not 0 <= draft.alternative <= MAX_ALTERNATIVE:
        raise _bad_value("alternative", f"must be from 0 to {MAX_ALTERNATIVE}")
    if draft.alternative:
        return Sampling(_TEMPERATURE, _TOP_P, seed=draft.alternative)
    return draft.sampling


def _choose_max_tokens(requested_tokens: int | None, mode: Mode) -> int:
    if requested_tokens is None or requested_tokens < 0:  # below 0, clients mean no limit
        return DEFAULT_MAX_TOKENS[mode]
    if requested_tokens == 0:
        raise BadRequest("invalid_field", "max_tokens must not be 0.", param="max_tokens")
    # Some clients always request thousands of tokens.
    return min(requested_tokens, MAX_CHAT_TOKENS if mode is Mode.CHAT else MAX_TOKENS)


def _check_sampling(sampling: Sampling) -> None:
    if not 0 <= sampling.temperature <= MAX_TEMPERATURE:
        raise _bad_value("temperature", f"must be between 0 and {MAX_TEMPERATURE:.0f}")
    if not 0 < sampling.top_p <= 1:
        raise _bad_value("top_p", "must be above 0 and at most 1")
    if sampling.seed is not None and abs(sampling.seed) > MAX_SEED:
        raise _bad_value("seed", "must have at most 63 bits")


def _bad_value(name: str, rule: str) -> BadRequest:
    return BadRequest("invalid_field", f"{name} {rule}.", param=name)


def _check_sizes(draft: UnvalidatedRequest) -> None:
    if max(len(draft.prefix), len(draft.suffix)) > MAX_TEXT_CHARS:
        raise _too_large(f"prefix and suffix must have at most {MAX_TEXT_CHARS} characters each.")
    if len(draft.messages) > MAX_MESSAGES:
        raise _too_large(f"messages must have at most {MAX_MESSAGES} entries.")
    if sum(len(message.text) for message in draft.messages) > MAX_TEXT_CHARS:
        raise _too_large(f"messages must have at most {MAX_TEXT_CHARS} characters together.")
    if len(draft.files) > MAX_FILES:
        raise _too_large(f"files must have at most {MAX_FILES} entries.")
    if sum(len(file.text) for file in draft.files) > MAX_FILES_CHARS:
        raise _too_large(f"files must have at most {MAX_FILES_CHARS} characters together.")
    paths = (draft.path, *draft.possible_paths, *(file.path for file in draft.files))
    names = (draft.repository, *paths)
    if max(map(len, names)) > MAX_NAME_CHARS:
        raise _too_large(f"paths and names must have at most {MAX_NAME_CHARS} characters.")
    if len(draft.stop) > MAX_STOPS or not all(0 < len(s) <= MAX_STOP_CHARS for s in draft.stop):
        raise BadRequest(
            "invalid_field",
            f"stop must have at most {MAX_STOPS} strings of 1 to {MAX_STOP_CHARS} characters.",
            param="stop",
        )


def _check_edit_fields(draft: UnvalidatedRequest, mode: Mode) -> None:
    """Check the fields that only the mode edit has."""
    fields = {"recent_edits": draft.recent_edits, "diagnostics": draft.diagnostics}
    for name, entries in fields.items():
        if entries and mode is not Mode.EDIT:
            raise _bad_value(name, "is only allowed in the mode edit")
    _check_recent_edits(draft.recent_edits)
    _check_diagnostics(draft.diagnostics)


def _check_recent_edits(edits: tuple[RecentEdit, ...]) -> None:
    if len(edits) > MAX_RECENT_EDITS:
        raise _too_large(f"recent_edits must have at most {MAX_RECENT_EDITS} entries.")
    if sum(len(edit.path) + len(edit.removed) + len(edit.added) for edit in edits) > (
        MAX_RECENT_EDITS_CHARS
    ):
        raise _too_large(
            f"recent_edits must have at most {MAX_RECENT_EDITS_CHARS} characters together."
        )
    for index, edit in enumerate(edits):
        if len(edit.path) > MAX_NAME_CHARS:
            raise _too_large(
                f"recent_edits[{index}].path must have at most {MAX_NAME_CHARS} characters."
            )
        _check_line(f"recent_edits[{index}].start_line", edit.start_line)


def _check_diagnostics(diagnostics: tuple[Diagnostic, ...]) -> None:
    if len(diagnostics) > MAX_DIAGNOSTICS:
        raise _too_large(f"diagnostics must have at most {MAX_DIAGNOSTICS} entries.")
    for index, diagnostic in enumerate(diagnostics):
        if len(diagnostic.message) > MAX_DIAGNOSTIC_CHARS:
            raise _too_large(
                f"diagnostics[{index}].message must have at most {MAX_DIAGNOSTIC_CHARS} characters."
            )
        _check_line(f"diagnostics[{index}].line", diagnostic.line)


def _check_definitions(definitions: tuple[Definition, ...], mode: Mode) -> None:
    if definitions and mode in (Mode.EDIT, Mode.CHAT):
        raise _bad_value("definitions", f"is not allowed in the mode {mode}")
    if len(definitions) > MAX_DEFINITIONS:
        raise _too_large(f"definitions must have at most {MAX_DEFINITIONS} entries.")
    if sum(len(item.path) + len(item.text) for item in definitions) > MAX_DEFINITIONS_CHARS:
        raise _too_large(
            f"definitions must have at most {MAX_DEFINITIONS_CHARS} characters together."
        )
    for index, definition in enumerate(definitions):
        if len(definition.path) > MAX_NAME_CHARS:
            raise _too_large(
                f"definitions[{index}].path must have at most {MAX_NAME_CHARS} characters."
            )


def _check_line(name: str, line: int) -> None:
    if not 0 <= line <= MAX_LINE:
        raise _bad_value(name, f"must be from 0 to {MAX_LINE}")


def _too_large(message: str) -> BadRequest:
    return BadRequest("too_large", message, http_status=413)
