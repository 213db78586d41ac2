"""The running account of one completion: filled along the sentence, closed by `record`."""

from dataclasses import dataclass, field

from caret.contracts.policy import Tier
from caret.contracts.usage import Finish
from caret.foundation.clock import Clock
from inference.completion.arrival import Arrival
from inference.completion.request import CompletionRequest, Principal
from inference.errors import CompletionError


@dataclass(slots=True)
class Account:
    arrival: Arrival
    clock: Clock
    principal: Principal | None = None  # None: not authenticated; such requests are not recorded
    request: CompletionRequest | None = None
    tier: Tier | None = None
    pool: str = ""
    replica: str = ""
    prompt_tokens: int = 0
    cached_tokens: int | None = None  # None: the engine did not tell
    generated_tokens: int = 0
    ending: Finish | None = None  # None: under way
    error_code: str = ""
    # Monotonic seconds; None: not reached.
    assembled_s: float | None = None
    asked_engine_s: float | None = None
    engine_first_s: float | None = None
    sent_first_s: float | None = None
    closed_s: float | None = None
    num_sent_chars: int = field(default=0)

    def assembled(self) -> None:
        self.assembled_s = self.clock.monotonic_s()

    def asks(self, *, pool: str, replica: str, prompt_tokens: int) -> None:
        self.pool, self.replica, self.prompt_tokens = pool, replica, prompt_tokens
        self.asked_engine_s = self.clock.monotonic_s()

    def heard(self, *, generated_tokens: int, cached_tokens: int | None) -> None:
        if self.engine_first_s is None and generated_tokens:
            self.engine_first_s = self.clock.monotonic_s()
        self.generated_tokens = generated_tokens
        if cached_tokens is not None:
            self.cached_tokens = cached_tokens

    def sent(self, text: str) -> None:
        if self.sent_first_s is None:
            self.sent_first_s = self.clock.monotonic_s()
        self.num_sent_chars += len(text)

    def finish(self, ending: Finish) -> None:
        """The first ending counts; what comes later is its echo."""
        if self.ending is None:
            self.ending = ending
        if self.closed_s is None:
            self.closed_s = self.clock.monotonic_s()

    def fail(self, error: CompletionError) -> None:
        if self.ending is None:
            self.error_code = error.code
        self.finish(Finish.ERROR)

    def ms_since_arrival(self, moment_s: float | None) -> float | None:
        if moment_s is None:
            return None
        return round((moment_s - self.arrival.received_s) * 1000, 3)

    @property
    def first_token_ms(self) -> float | None:
        return self.ms_since_arrival(self.sent_first_s)

    @property
    def total_ms(self) -> float:
        return self.ms_since_arrival(self.closed_s or self.clock.monotonic_s()) or 0.0

    @property
    def engine_ms(self) -> float | None:
        """From asking the engine to its first token."""
        if self.asked_engine_s is None or self.engine_first_s is None:
            return None
        return round((self.engine_first_s - self.asked_engine_s) * 1000, 3)

    @property
    def queue_ms(self) -> float | None:
        """From the request's arrival to the call of the engine, assembly included."""
        return self.ms_since_arrival(self.asked_engine_s)
