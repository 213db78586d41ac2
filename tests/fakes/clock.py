"""A clock that only a test advances."""


class FakeClock:
    def __init__(self, *, now_ms: int = 1_750_000_000_000, monotonic_s: float = 1_000.0) -> None:
        self._now_ms = now_ms
        self._monotonic_s = monotonic_s

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_s(self) -> float:
        return self._monotonic_s

    def pass_s(self, seconds: float) -> None:
        self._now_ms += round(seconds * 1000)
        self._monotonic_s += seconds

    def shift_wall_clock(self, by_ms: int) -> None:
        """Move the wall clock, as a time server does; the monotonic clock is unaffected."""
        self._now_ms += by_ms
