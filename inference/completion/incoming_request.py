"""A request as a consumer of some protocol hands it to the pipeline, not validated yet."""

from dataclasses import dataclass, field

from caret.foundation.ids import RequestId, new_request_id
from inference.completion.edit import Diagnostic, RecentEdit
from inference.completion.generation_options import (
    GREEDY,
    NO_TIME_LIMITS,
    Sampling,
    TimeLimits,
)


@dataclass(frozen=True, slots=True)
class ContextFile:
    """Another file that the client sent as context."""

    path: str
    text: str
    edited_at: float  # Unix seconds; 0: unknown
    # The repository pins the file, not the user: it is context for all users of the repository.
    is_pinned: bool = False


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a symbol that the cursor's file uses: a few lines of another file."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One turn of a chat."""

    role: str  # system | user | assistant
    text: str


@dataclass(frozen=True, slots=True)
class UnvalidatedRequest:
    """A completion as a client requests it. The receive stage validates it."""

    mode: str
    prefix: str  # text before the cursor
    suffix: str = ""  # text after the cursor
    path: str = ""
    # The paths that the file may have according to comments in the prompt, the likeliest first.
    possible_paths: tuple[str, ...] = ()
    language: str = ""  # as the editor names it; "": unknown
    files: tuple[ContextFile, ...] = ()
    repository: str = ""
    imports: tuple[str, ...] = ()  # the file's framework, if known, and then its imported modules
    max_tokens: int | None = None  # None: the mode's default
    stop: tuple[str, ...] = ()
    is_raw: bool = False  # `prefix` is a whole prompt, including the markers
    messages: tuple[ChatMessage, ...] = ()  # for chat only; prefix and suffix are empty then
    trigger: str = "automatic"
    is_warm_up: bool = False  # only prefill the stable part of the prompt
    model: str = ""  # "": the default
    alternative: int = 0  # 0: the likeliest text; each other number: another sampled text
    sampling: Sampling = GREEDY
    time_limits: TimeLimits = NO_TIME_LIMITS
    recent_edits: tuple[RecentEdit, ...] = ()  # for edits only, oldest first
    diagnostics: tuple[Diagnostic, ...] = ()  # for edits only
    definitions: tuple[Definition, ...] = ()  # in the client's order


@dataclass(frozen=True, slots=True)
class IncomingRequest:
    protocol: str  # such as "stream" or "openai"
    key_text: str | None  # the API key as presented
    address: str | None  # of the client; None: unknown
    draft: UnvalidatedRequest
    received_s: float  # monotonic seconds
    occurred_at_ms: int  # Unix milliseconds
    trace_parent: str | None = None  # the client's own trace, a W3C header as received
    editor: str = ""  # one of inference.consumers.base.EDITORS; "": unknown
    body_read_s: float | None = None  # when the whole body had arrived; None: at `received_s`
    request_id: RequestId = field(default_factory=new_request_id)
