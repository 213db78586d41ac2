"""What a protocol's consumer hands to the pipeline: a request as it came, not yet believed."""

from dataclasses import dataclass, field

from caret.foundation.ids import RequestId, new_request_id


@dataclass(frozen=True, slots=True)
class ContextFile:
    """Another file of the client's, as context."""

    path: str
    text: str
    edited_at: float  # Unix seconds; 0: not known


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One turn of a chat."""

    role: str  # system | user | assistant
    text: str


@dataclass(frozen=True, slots=True)
class UnvalidatedRequest:
    """A completion as a client asks for it; `receive` decides whether it makes sense."""

    mode: str
    prefix: str  # text before the cursor
    suffix: str = ""  # text after the cursor
    path: str = ""
    language: str = ""  # as editors name it; "": not said
    files: tuple[ContextFile, ...] = ()
    repository: str = ""
    max_tokens: int | None = None  # None: the mode's default
    stop: tuple[str, ...] = ()
    is_raw: bool = False  # `prefix` is a whole prompt, markers included
    messages: tuple[ChatMessage, ...] = ()  # of a chat; prefix and suffix are empty then
    trigger: str = "automatic"
    is_warm_up: bool = False  # only the prompt's stable part is wanted in the prefix cache


@dataclass(frozen=True, slots=True)
class IncomingRequest:
    protocol: str  # "stream", "openai"
    key_text: str | None  # the API key as presented
    address: str | None  # of the client; None: it has none
    draft: UnvalidatedRequest
    received_s: float  # monotonic seconds
    occurred_at_ms: int  # Unix milliseconds
    trace_parent: str | None = None  # of the client's own trace, a W3C header as it came
    editor: str = ""  # one of inference.gateway.protocol.user_agent
    body_read_s: float | None = None  # when a body was whole; None: at `received_s`
    request_id: RequestId = field(default_factory=new_request_id)
