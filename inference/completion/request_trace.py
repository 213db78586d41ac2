"""The request trace of one completion: each stage adds to it, and `record` completes it."""

from dataclasses import dataclass, field
from typing import Final, Protocol

from caret.contracts.usage import FinishReason
from caret.foundation.clock import Clock
from inference.completion.edit import ProposedEdit
from inference.completion.incoming_request import IncomingRequest
from inference.completion.request import AdmittedRequest, CompletionRequest, Principal
from inference.completion.segment import Segment
from inference.errors import CompletionError

DEFAULT_MODEL_NAME: Final = "caret"  # the name that our settings for editors use


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
    pool: str = ""
    model: str = ""  # that the engine runs; "": no engine was chosen
    replica: str = ""
    prompt_tokens: int = 0
    cached_tokens: int | None = None  # None: not reported by the engine
    generated_tokens: int = 0
    finish_reason: FinishReason | None = None  # None: in flight
    error_code: str = ""
    filter_reason: str = ""  # why the filter truncated or withheld the text; "": it did neither
    num_files: int = 0  # other files in the prompt
    num_snippets: int = 0
    segments: tuple[Segment, ...] = ()  # of the prompt, in order; empty: no prompt yet
    num_in_flight_at_replica: int | None = None  # other requests of this gateway at the replica
    # When each stage ended or each event occurred, in monotonic seconds; None: not reached.
    received_s: float | None = None  # validated
    authenticated_s: float | None = None
    admitted_s: float | None = None
    assembled_s: float | None = None
    routed_s: float | None = None
    engine_called_s: float | None = None
    engine_first_token_s: float | None = None
    first_sent_s: float | None = None
    closed_s: float | None = None
    client_wait_s: float = 0.0  # seconds in which text waited for the client to read it
    # When a cancel or a newer request on the same WebSocket ended it; None: neither did.
    cancelled_s: float | None = None
    engine_closed_s: float | None = None  # when the last engine's stream was closed
    num_sent_chars: int = field(default=0)
    texts: list[str] | None = None  # the sent text, if it may be stored; None: it may not
    num_sent_newlines: int = 0  # of the sent characters
    is_syntax_checked: bool = False  # the filter used a parser
    edit: ProposedEdit | None = None  # None: another mode, or there is nothing to propose

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
        """Note that the replica failed and another one continues. Times are kept."""
        self.replica, self.num_in_flight_at_replica = (
            engine_request.replica_name,
            engine_request.num_in_flight_at_replica,
        )

    def mark_engine_closed(self) -> None:
        """Note that the engine's stream is closed, which tells the engine to stop."""
        self.engine_closed_s = self.clock.monotonic_s()

    def mark_engine_called(self) -> None:
        self.engine_called_s = self.clock.monotonic_s()

    def record_chunk(self, *, generated_tokens: int, cached_tokens: int | None) -> None:
        if self.engine_first_token_s is None and generated_tokens:
            self.engine_first_token_s = self.clock.monotonic_s()
        self.generated_tokens = generated_tokens
        # Keep the first number: after a reroute, the cache may also contain the request's own text.
        if self.cached_tokens is None:
            self.cached_tokens = cached_tokens

    def record_sent_text(self, text: str, *, at_s: float) -> None:
        """Add sent text. `at_s` is when sending began, before the client had read the text."""
        if self.first_sent_s is None:
            self.first_sent_s = at_s
        self.num_sent_chars += len(text)
        if self.texts is not None:
            self.texts.append(text)
        self.num_sent_newlines += text.count("\n")

    def record_edit(self, edit: ProposedEdit) -> None:
        """Note the edit, which the last message will contain. It counts as sent now."""
        self.edit = edit
        self.first_sent_s = self.clock.monotonic_s()
        self.num_sent_chars = edit.num_changed_chars
        self.num_sent_newlines = max(0, len(edit.text.splitlines()) - 1)
        if self.texts is not None:
            self.texts.append(edit.text)

    def finish(self, finish_reason: FinishReason) -> None:
        """Note how the completion ended. Only the first call counts."""
        if self.finish_reason is None:
            self.finish_reason = finish_reason
        if self.closed_s is None:
            self.closed_s = self.clock.monotonic_s()

    def fail(self, error: CompletionError) -> None:
        if self.finish_reason is None:
            self.error_code = error.code
        self.finish(FinishReason.ERROR)

    @property
    def model_name(self) -> str:
        """The model's name in responses: the engine's model, else the requested or default name."""
        return self.model or self.arrival.draft.model or DEFAULT_MODEL_NAME

    def elapsed_ms(self, moment_s: float | None) -> float | None:
        if moment_s is None:
            return None
        return round((moment_s - self.arrival.received_s) * 1000, 3)

    @property
    def num_sent_lines(self) -> int:
        return self.num_sent_newlines + 1 if self.num_sent_chars else 0

    @property
    def first_token_ms(self) -> float | None:
        return self.elapsed_ms(self.first_sent_s)

    @property
    def total_ms(self) -> float:
        return self.elapsed_ms(self.closed_s or self.clock.monotonic_s()) or 0.0

    @property
    def engine_ms(self) -> float | None:
        """Milliseconds from the request to the engine until its first token."""
        if self.engine_called_s is None or self.engine_first_token_s is None:
            return None
        return round((self.engine_first_token_s - self.engine_called_s) * 1000, 3)

    @property
    def time_to_engine_ms(self) -> float | None:
        """Milliseconds from arrival until the request to the engine, including assembly."""
        return self.elapsed_ms(self.engine_called_s)
