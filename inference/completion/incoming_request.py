"""A request as a consumer of any protocol gives it to the pipeline, before its validation."""

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
    edited_at: float  # only the order counts: the most recently edited file has the largest number
    is_pinned: bool = False  # the repository chooses it as context for all its users


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a symbol that the cursor's file uses: a few lines of another file."""

    path: str  # of the other file
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
    path: str = ""  # of the cursor's file; "": unknown
    # The paths that the file may have according to comments in the prompt, the most likely first.
    possible_paths: tuple[str, ...] = ()
    language: str = ""  # as the editor names it; "": unknown
    files: tuple[ContextFile, ...] = ()  # in any order
    repository: str = ""  # its name; "": unknown
    imports: tuple[str, ...] = ()  # the file's framework, if known, and then its imported modules
    max_tokens: int | None = None  # None: the mode's default
    stop: tuple[str, ...] = ()  # the text ends before the first of these strings
    is_raw: bool = False  # `prefix` is a whole prompt, including the markers of the model family
    messages: tuple[ChatMessage, ...] = ()  # for chat only; prefix and suffix are empty then
    trigger: str = "automatic"
    is_warm_up: bool = False  # only prefill the stable part of the prompt
    model: str = ""  # "": the tenant's default
    # 0: the text as `sampling` says. Another number: a sampled text with this number as its seed.
    alternative: int = 0
    sampling: Sampling = GREEDY
    time_limits: TimeLimits = NO_TIME_LIMITS
    recent_edits: tuple[RecentEdit, ...] = ()  # for edits only, oldest first
    diagnostics: tuple[Diagnostic, ...] = ()  # for edits only
    definitions: tuple[Definition, ...] = ()  # in the client's order


@dataclass(frozen=True, slots=True)
class IncomingRequest:
    """An unvalidated request, with its sender and the times of its arrival."""

    protocol: str  # such as "stream" or "openai"
    key_text: str | None  # the API key as presented; None: no key
    address: str | None  # IP address of the client; None: unknown
    draft: UnvalidatedRequest
    # When the request arrived, in monotonic seconds; over HTTP, when its headers did.
    received_s: float
    occurred_at_ms: int  # when the whole request had arrived, in Unix milliseconds
    trace_parent: str | None = None  # the W3C header `traceparent`, as received; None: none
    editor: str = ""  # one of inference.consumers.base.EDITORS; "": unknown
    # When the whole body had arrived, in monotonic seconds; None: at `received_s`.
    body_read_s: float | None = None
    request_id: RequestId = field(default_factory=new_request_id)
