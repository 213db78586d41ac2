"""The request trace of one completion. Each stage adds its data; `record` reads the whole trace."""

from dataclasses import dataclass
from typing import Final, Protocol

from caret.contracts.usage import FinishReason
from caret.foundation.clock import Clock
from inference.completion.edit import ProposedEdit
from inference.completion.incoming_request import IncomingRequest
from inference.completion.request import AdmittedRequest, CompletionRequest, Principal
from inference.completion.segment import Segment
from inference.errors import CompletionError

DEFAULT_MODEL_NAME: Final = "caret"  # the model name in our settings for editors


# The trace reads these properties of prompts and engine requests. Their classes are in packages
# that import this one, so they cannot be imported here.


class _Prompt(Protocol):
    @property
    def token_ids(self) -> list[int]: ...
    @property
    def num_files(self) -> int: ...
    @property
    def num_snippets(self) -> int: ...
    @property
    def segments(self) -> tuple[Segment, ...]: ...


class _EngineRequest(Protocol):
    @property
    def model(self) -> str: ...
    @property
    def replica_name(self) -> str: ...
    @property
    def num_in_flight_at_replica(self) -> int: ...


@dataclass(slots=True)
class RequestTrace:
    arrival: IncomingRequest
    clock: Clock
    request: CompletionRequest | None = None
    principal: Principal | None = None  # None: not authenticated; such requests are not recorded
    admitted: AdmittedRequest | None = None
    pool: str = ""  # its name; "": not admitted
    model: str = ""  # the name of the model that the engine runs; "": no engine was chosen
    replica: str = ""  # the name of the last replica; "": none was chosen
    prompt_tokens: int = 0
    cached_tokens: int | None = None  # of the prompt; None: not reported by the engine
    generated_tokens: int = 0
    finish_reason: FinishReason | None = None  # None: in flight
    error_code: str = ""  # "": no error
    filter_reason: str = ""  # why the filter truncated or withheld text; "": it did neither
    num_files: int = 0  # other files in the prompt
    num_snippets: int = 0  # in the prompt
    segments: tuple[Segment, ...] = ()  # of the prompt, in order; empty: no prompt yet
    num_in_flight_at_replica: int | None = None  # other requests of this gateway at the replica
    # When a stage ended or an event occurred, in monotonic seconds; None: it did not.
    received_s: float | None = None  # the receive stage has validated the request
    authenticated_s: float | None = None
    admitted_s: float | None = None
    assembled_s: float | None = None
    routed_s: float | None = None
    engine_called_s: float | None = None
    engine_first_token_s: float | None = None
    first_sent_s: float | None = None  # the gateway began to send the first text
    closed_s: float | None = None  # the completion ended
    # A cancel, or a newer request on the same WebSocket, ended the completion.
    cancelled_s: float | None = None
    engine_closed_s: float | None = None  # the stream of the last engine was closed
    client_wait_s: float = 0.0  # how long text waited for the client to read it, in all
    num_sent_chars: int = 0
    texts: list[str] | None = None  # the sent text in parts; None: content is not captured
    num_sent_newlines: int = 0  # of the sent characters
    is_syntax_checked: bool = False  # the filter used a parser
    edit: ProposedEdit | None = None  # None: another mode, or the model proposes no edit

    def mark_received(self, request: CompletionRequest) -> None:
        self.request = request
        self.received_s = self.clock.monotonic_s()

    def mark_authenticated(self, principal: Principal) -> None:
        self.principal = principal
        self.authenticated_s = self.clock.monotonic_s()

    def mark_admitted(self, admitted: AdmittedRequest) -> None:
        self.admitted, self.pool = admitted, admitted.pool
        if admitted.principal.is_content_captured:
            self.texts = []
        self.admitted_s = self.clock.monotonic_s()

    def mark_assembled(self, prompt: _Prompt) -> None:
        self.prompt_tokens = len(prompt.token_ids)
        self.num_files, self.num_snippets = prompt.num_files, prompt.num_snippets
        self.segments = prompt.segments
        self.assembled_s = self.clock.monotonic_s()

    def mark_routed(self, engine_request: _EngineRequest) -> None:
        self.model = engine_request.model
        self.replica, self.num_in_flight_at_replica = (
            engine_request.replica_name,
            engine_request.num_in_flight_at_replica,
        )
        self.routed_s = self.clock.monotonic_s()

    def mark_rerouted(self, engine_request: _EngineRequest) -> None:
        """Note that the replica failed and another one continues. The times do not change."""
        self.replica, self.num_in_flight_at_replica = (
            engine_request.replica_name,
            engine_request.num_in_flight_at_replica,
        )

    def mark_engine_closed(self) -> None:
        """Note that the engine's stream was closed. Without a reader, the engine stops."""
        self.engine_closed_s = self.clock.monotonic_s()

    def mark_engine_called(self) -> None:
        self.engine_called_s = self.clock.monotonic_s()

    def record_chunk(self, *, generated_tokens: int, cached_tokens: int | None) -> None:
        """Note the counts of a chunk. `generated_tokens` counts all tokens generated so far."""
        if self.engine_first_token_s is None and generated_tokens:
            self.engine_first_token_s = self.clock.monotonic_s()
        self.generated_tokens = generated_tokens
        # Keep the first number: after a reroute, the cache may also contain the generated text.
        if self.cached_tokens is None:
            self.cached_tokens = cached_tokens

    def record_sent_text(self, text: str, *, at_s: float) -> None:
        """Add sent text. `at_s` is the time when sending began, in monotonic seconds."""
        if self.first_sent_s is None:
            self.first_sent_s = at_s
        self.num_sent_chars += len(text)
        if self.texts is not None:
            self.texts.append(text)
        self.num_sent_newlines += text.count("\n")

    def record_edit(self, edit: ProposedEdit) -> None:
        """Note the edit. It counts as sent now, although the client gets it only at the end."""
        self.edit = edit
        self.first_sent_s = self.clock.monotonic_s()
        self.num_sent_chars = edit.num_changed_chars
        # The text consists of whole lines, so its last newline begins no further line.
        self.num_sent_newlines = max(0, len(edit.text.splitlines()) - 1)
        if self.texts is not None:
            self.texts.append(edit.text)

    def finish(self, finish_reason: FinishReason) -> None:
        """Note the finish reason and the time of the end. Only the first call has an effect."""
        if self.finish_reason is None:
            self.finish_reason = finish_reason
            self.closed_s = self.clock.monotonic_s()

    def fail(self, error: CompletionError) -> None:
        """Finish with the error, unless the completion has ended already."""
        if self.finish_reason is None:
            self.error_code = error.code
        self.finish(FinishReason.ERROR)

    @property
    def model_name(self) -> str:
        """The model's name in responses: the engine's model, else the requested or default name."""
        return self.model or self.arrival.draft.model or DEFAULT_MODEL_NAME

    def elapsed_ms(self, at_s: float | None) -> float | None:
        """Return the milliseconds from arrival until `at_s` (monotonic seconds)."""
        if at_s is None:
            return None
        return round((at_s - self.arrival.received_s) * 1000, 3)

    @property
    def num_sent_lines(self) -> int:
        return self.num_sent_newlines + 1 if self.num_sent_chars else 0

    @property
    def first_token_ms(self) -> float | None:
        """Milliseconds from arrival until sending of the first text began; None: no text."""
        return self.elapsed_ms(self.first_sent_s)

    @property
    def total_ms(self) -> float:
        """Milliseconds from arrival until the end, or until now."""
        return self.elapsed_ms(self.closed_s or self.clock.monotonic_s()) or 0.0

    @property
    def engine_ms(self) -> float | None:
        """Milliseconds from the call of the engine until its first token; None: no token."""
        if self.engine_called_s is None or self.engine_first_token_s is None:
            return None
        return round((self.engine_first_token_s - self.engine_called_s) * 1000, 3)

    @property
    def time_to_engine_ms(self) -> float | None:
        """Milliseconds from arrival until the call of the engine; None: it was not called."""
        return self.elapsed_ms(self.engine_called_s)
