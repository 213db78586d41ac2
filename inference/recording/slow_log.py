"""One line in the log for a completion that was slower than its target, so that its id is known."""

from typing import Final

import structlog

from caret.contracts.latency_targets import FIRST_TOKEN_TARGETS_MS
from caret.foundation.clock import Clock
from inference.completion.request_trace import RequestTrace
from inference.recording.stage_timings import compute_stage_timings

# Under overload all of them are slow; a few lines say so, and metrics say how many.
MAX_LINES: Final = 10
PER_S: Final = 10.0
log = structlog.get_logger(__name__)


class SlowLog:
    """An Observer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_s = clock.monotonic_s()
        self._num_lines = 0
        self._num_withheld = 0  # since the last line

    def on_completed(self, account: RequestTrace) -> None:
        request, first_ms = account.request, account.first_token_ms
        if request is None or request.is_warm_up or first_ms is None:
            return
        if first_ms <= FIRST_TOKEN_TARGETS_MS[request.mode]:
            return
        if not self._has_room():
            self._num_withheld += 1
            return
        times = compute_stage_timings(account, recorded_s=self._clock.monotonic_s())
        log.info(
            "completion.slow",
            request_id=account.arrival.request_id,
            mode=request.mode.value,
            pool=account.pool,
            replica=account.replica,
            first_token_ms=first_ms,
            target_ms=FIRST_TOKEN_TARGETS_MS[request.mode],
            stages_ms={each.stage: _ms(each.ended_s - each.began_s) for each in times},
            num_withheld=self._num_withheld,
        )
        self._num_withheld = 0

    def _has_room(self) -> bool:
        now_s = self._clock.monotonic_s()
        if now_s - self._since_s >= PER_S:
            self._since_s, self._num_lines = now_s, 0
        self._num_lines += 1
        return self._num_lines <= MAX_LINES


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 2)
