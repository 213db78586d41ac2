"""Which replicas failed just now, and for how long they are left alone."""

from typing import Final

from caret.foundation.clock import Clock
from inference.pools.catalog import Replica

REST_S: Final = (
    2.0  # an engine that was killed needs longer to come back; others are asked meanwhile
)


class Health:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rests_until_s: dict[str, float] = {}

    def failed(self, replica: Replica) -> None:
        self._rests_until_s[replica.url] = self._clock.monotonic_s() + REST_S

    def is_resting(self, replica: Replica) -> bool:
        return self._rests_until_s.get(replica.url, 0.0) > self._clock.monotonic_s()
