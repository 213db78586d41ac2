"""The frames of the stream protocol `caret.v1`, as on the wire (platform/docs/protocol.md).

Unknown fields in a client's frame are ignored, so that newer clients work with older gateways.
"""

from typing import Final

import msgspec

from caret.contracts.content_exclusion import exclusion_names
from caret.contracts.policy import Mode
from caret.contracts.usage import FinishReason, OutcomeEvent
from inference.completion.edit import DiagnosticSeverity, ProposedEdit
from inference.completion.request import Principal
from inference.completion.request_trace import RequestTrace
from inference.completion.segment import Segment, SegmentKind
from inference.errors import BadRequest
from inference.gateway.bad_fields import name_bad_field
from inference.gateway.receive import MAX_NAME_CHARS

SUBPROTOCOL: Final = "caret.v1"
MAX_FRAME_CHARS: Final = 6 * 1024 * 1024  # enough for the limits of `receive`, escapes included


class FileFrame(msgspec.Struct, frozen=True):
    path: str
    text: str
    edited_at: float = 0.0  # Unix seconds; 0: unknown
    is_pinned: bool = False  # the repository chose this file as context for all users


class DefinitionFrame(msgspec.Struct, frozen=True):
    path: str  # of the file with the definition
    text: str  # of the definition alone


class RepositoryFrame(msgspec.Struct, frozen=True):
    name: str = ""
    framework: str = ""  # of the file; "": unknown
    imports: list[str] = []  # modules that the file imports


class RecentEditFrame(msgspec.Struct, frozen=True):
    path: str
    start_line: int  # in that file, from 0
    removed: str
    added: str


class DiagnosticFrame(msgspec.Struct, frozen=True):
    line: int  # from the first line of the prefix, which is 0
    severity: DiagnosticSeverity
    message: str


class CompleteFrame(msgspec.Struct, frozen=True, tag="complete"):
    id: str  # chosen by the client
    prefix: str
    mode: str = "inline"
    path: str = ""
    language: str = ""
    suffix: str = ""
    files: list[FileFrame] = []
    repository: RepositoryFrame = RepositoryFrame()
    max_tokens: int | None = None  # None: the mode's default
    trigger: str = "automatic"
    # The client's own trace, a W3C header. An invalid value starts a new trace.
    traceparent: str | None = None
    include_prompt_segments: bool = False  # whether `meta` includes the composition of the prompt
    model: str = ""  # "": the default
    alternative: int = 0  # 0: the likeliest text; each other number: another sampled text
    recent_edits: list[RecentEditFrame] = []  # only in the mode edit, oldest first
    diagnostics: list[DiagnosticFrame] = []  # only in the mode edit
    definitions: list[DefinitionFrame] = []  # of symbols in the file; not in the mode edit


class FileOpenedFrame(msgspec.Struct, frozen=True, tag="file_opened"):
    """A file was opened in the editor. The gateway does not answer."""

    path: str
    text: str
    language: str = ""
    files: list[FileFrame] = []
    repository: RepositoryFrame = RepositoryFrame()


class CancelFrame(msgspec.Struct, frozen=True, tag="cancel"):
    id: str


class OutcomeFrame(msgspec.Struct, frozen=True, tag="outcome"):
    event: OutcomeEvent
    id: str = ""  # optional if there is a request_id
    request_id: str = ""  # for completions that another connection requested
    chars: int | None = None  # None: the whole suggestion
    lines: int | None = None  # None: the whole suggestion
    after_ms: int = 0  # since the suggestion was shown; for persisted: since it was accepted
    # Only for persisted: the edit distance as a share of the accepted text, 0 to 1.
    edited_ratio: float | None = None
    # Only for shown: from sending the request to text on the screen; None: the user did not wait.
    display_ms: int | None = None
    text: str | None = None  # the text as edited; used only if the user consents to content capture


class TypingFrame(msgspec.Struct, frozen=True, tag="typing"):
    """The characters typed by hand since the last such frame. Only errors are answered."""

    chars: dict[str, int]  # by language


class PolicyQueryFrame(msgspec.Struct, frozen=True, tag="policy"):
    """Asks for the policy in a repository. The gateway answers with a PolicyFrame."""

    repository: str = ""


ClientFrame = (
    CompleteFrame | CancelFrame | OutcomeFrame | FileOpenedFrame | TypingFrame | PolicyQueryFrame
)


class DeltaFrame(msgspec.Struct, frozen=True, tag="delta"):
    id: str
    text: str


class SegmentFrame(msgspec.Struct, frozen=True):
    kind: SegmentKind
    tokens: int
    cached_tokens: int | None  # among `tokens`; None: not reported by the engine


class PromptSegments(msgspec.Struct, frozen=True):
    """The composition of the prompt: counts, never text."""

    segments: list[SegmentFrame]  # in the order of the prompt; empty: no prompt was assembled
    files_sent: int
    files_excluded: int  # of the sent files, by policy
    files_in_prompt: int  # of the sent files, whole or in part
    snippets_in_prompt: int


class CompletionMeta(msgspec.Struct, frozen=True):
    """The numbers of one completion.

    Times are milliseconds since the request was received, except engine_ms. None: not reached, or
    not reported by the engine.
    """

    request_id: str
    first_token_ms: float | None
    total_ms: float
    time_to_engine_ms: float | None  # until the request went to the engine, assembly included
    assemble_ms: float | None  # until the prompt was assembled
    engine_ms: float | None  # from the request to the engine until its first token
    prompt_tokens: int
    cached_tokens: int | None
    generated_tokens: int
    tier: str
    pool: str
    replica: str
    filter_reason: str  # a FilterReason; "": the filter neither truncated nor withheld the text
    # Left out unless the client requested them.
    prompt_segments: PromptSegments | msgspec.UnsetType = msgspec.UNSET


class EditFrame(msgspec.Struct, frozen=True):
    """Replaces the lines [start_line, end_line), counted from the first line of the prefix."""

    start_line: int
    end_line: int
    text: str


class DoneFrame(msgspec.Struct, frozen=True, tag="done"):
    id: str
    finish_reason: FinishReason
    meta: CompletionMeta
    edit: EditFrame | msgspec.UnsetType = msgspec.UNSET  # left out if there is nothing to propose


class ErrorFrame(msgspec.Struct, frozen=True, tag="error", omit_defaults=True):
    id: str  # of the client's frame; "" if it had none
    code: str
    message: str
    retry_after_s: float | None = None  # left out if unknown, or if waiting would not help


class PolicyFrame(msgspec.Struct, frozen=True, tag="policy"):
    """The current policy. Clients use it to avoid requests that would be rejected."""

    repository: str
    excluded_globs: list[str]  # of paths that are excluded in this repository or in all of them
    modes: list[str]  # that the key may request


ServerFrame = DeltaFrame | DoneFrame | ErrorFrame | PolicyFrame


class _AnyFrame(msgspec.Struct):
    """The fields that can be read from an invalid frame."""

    type: str = ""
    id: str = ""


_TYPES: Final = ("complete", "cancel", "outcome", "file_opened", "typing", "policy")
FRAMES_WITHOUT_ID: Final = (FileOpenedFrame, TypingFrame, PolicyQueryFrame)
_decode = msgspec.json.Decoder(ClientFrame).decode
_decode_any = msgspec.json.Decoder(_AnyFrame).decode
_encode = msgspec.json.Encoder().encode
MAX_ID_CHARS: Final = 64


class InvalidFrame(BadRequest):
    """The frame is invalid. `id` is the frame's ID; "": none, or it could not be read."""

    def __init__(self, code: str, message: str, *, id: str = "") -> None:
        super().__init__(code, message)
        self.id: Final = id


def decode_frame(text: str) -> ClientFrame:
    """Decode a client's frame.

    The codes of InvalidFrame are `too_large`, `invalid_json`, `unknown_type` and `invalid_field`.
    Raises InvalidFrame.
    """
    if len(text) > MAX_FRAME_CHARS:
        raise InvalidFrame("too_large", f"A frame must have at most {MAX_FRAME_CHARS} characters.")
    try:
        frame: ClientFrame = _decode(text)
    except msgspec.ValidationError as error:
        raise _to_invalid_frame(text, error) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):  # the last: deep nesting
        raise InvalidFrame("invalid_json", "The frame is not valid JSON.") from None
    has_request_id = isinstance(frame, OutcomeFrame) and frame.request_id != ""
    min_chars = 0 if has_request_id else 1
    if not isinstance(frame, FRAMES_WITHOUT_ID) and not min_chars <= len(frame.id) <= MAX_ID_CHARS:
        message = f"id must have {min_chars} to {MAX_ID_CHARS} characters."
        raise InvalidFrame("invalid_field", message)
    return frame


def encode_frame(frame: ServerFrame) -> str:
    return _encode(frame).decode()


def _to_invalid_frame(text: str, error: msgspec.ValidationError) -> InvalidFrame:
    """Return an error that names the invalid field, but not its value, which may be code."""
    try:
        frame = _decode_any(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return InvalidFrame(
            "invalid_field", "The frame is not an object with a text `type` and `id`."
        )
    identifier = frame.id if len(frame.id) <= MAX_ID_CHARS else ""
    if frame.type not in _TYPES:
        message = f"type must be one of {', '.join(_TYPES)}."
        return InvalidFrame("unknown_type", message, id=identifier)
    message = f"{name_bad_field(error) or 'A required field'} is missing or malformed."
    return InvalidFrame("invalid_field", message, id=identifier)


def build_meta(trace: RequestTrace, *, include_prompt_segments: bool) -> CompletionMeta:
    return CompletionMeta(
        request_id=trace.arrival.request_id,
        first_token_ms=trace.first_token_ms,
        total_ms=trace.total_ms,
        time_to_engine_ms=trace.time_to_engine_ms,
        assemble_ms=trace.elapsed_ms(trace.assembled_s),
        engine_ms=trace.engine_ms,
        prompt_tokens=trace.prompt_tokens,
        cached_tokens=trace.cached_tokens,
        generated_tokens=trace.generated_tokens,
        tier=trace.request.tier if trace.request else "",
        pool=trace.pool,
        replica=trace.replica,
        filter_reason=trace.filter_reason,
        prompt_segments=_build_prompt_segments(trace) if include_prompt_segments else msgspec.UNSET,
    )


def to_edit_frame(edit: ProposedEdit | None) -> EditFrame | msgspec.UnsetType:
    return msgspec.UNSET if edit is None else EditFrame(edit.start_line, edit.end_line, edit.text)


def _build_prompt_segments(trace: RequestTrace) -> PromptSegments:
    num_sent = 0 if trace.request is None else len(trace.request.files)
    num_allowed = num_sent if trace.admitted is None else len(trace.admitted.request.files)
    return PromptSegments(
        segments=_to_segment_frames(trace.segments, trace.cached_tokens),
        files_sent=num_sent,
        files_excluded=num_sent - num_allowed,
        files_in_prompt=trace.num_files,
        snippets_in_prompt=trace.num_snippets,
    )


def _to_segment_frames(
    segments: tuple[Segment, ...], cached_tokens: int | None
) -> list[SegmentFrame]:
    """Divide the cached tokens among the segments. Engines cache the beginning of a prompt."""
    frames: list[SegmentFrame] = []
    cached_left = cached_tokens
    for segment in segments:
        cached: int | None = None
        if cached_left is not None:
            cached = min(cached_left, segment.num_tokens)
            cached_left -= cached
        frames.append(SegmentFrame(segment.kind, segment.num_tokens, cached))
    return frames


def build_policy_frame(
    principal: Principal, modes: frozenset[Mode], repository: str
) -> PolicyFrame:
    """Return the principal's policy for one repository, without globs of other repositories.

    `modes` are the modes that the principal can request.

    The code of InvalidFrame is `too_large`. Raises InvalidFrame.
    """
    if len(repository) > MAX_NAME_CHARS:
        raise InvalidFrame(
            "too_large", f"repository must have at most {MAX_NAME_CHARS} characters."
        )
    policy = principal.snapshot.policy
    exclusion = policy.content_exclusion
    names = exclusion_names(exclusion, repository)
    globs = (glob for name in names for glob in exclusion[name])
    return PolicyFrame(
        repository=repository,
        excluded_globs=list(dict.fromkeys(globs)),
        modes=[mode for mode in Mode if mode in modes],
    )
