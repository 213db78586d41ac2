"""Whether a replica keeps those who asked it waiting for longer than anybody waits for grey text.

It says that it is well, and it generates: no circuit opens. Its neighbours are asked instead, as
long as one of them is not late itself; a pool that is late as a whole is overloaded, and that is
admission's. After a rest one request at a time tries it, and a quick one brings it back; after a
late one the rest is twice as long. Outlier ejection, as service meshes have it, by first tokens
instead of by errors.
"""

from typing import Final, Generic, TypeVar

# In a row: one may be a long prompt, or a pause of the machine's.
MAX_CONSECUTIVE_LATE: Final = 3
EJECTION_S: Final = 2.0  # the first
MAX_EJECTION_S: Final = 16.0
Request = TypeVar("Request")


class LatencyOutlierDetector(Generic[Request]):
    """Of one replica. All times are monotonic seconds."""

    def __init__(self) -> None:
        self._waiting: dict[Request, float] = {}  # until when the first token is in time
        self._num_late = 0  # in a row, without those that are still waiting
        self._rests_until_s: float | None = None  # None: it is not late
        self._rest_s = EJECTION_S

    def on_request(self, request: Request, *, until_s: float) -> None:
        """`until_s`: its first token is late after that."""
        self._waiting[request] = until_s

    def on_first_token(self, request: Request, now_s: float) -> None:
        """The first token has come; what comes after it says nothing."""
        until_s = self._waiting.pop(request, None)
        if until_s is None:
            return
        if now_s > until_s:
            self._count_late(now_s)
        else:
            self._num_late, self._rests_until_s, self._rest_s = 0, None, EJECTION_S

    def on_abandoned(self, request: Request, now_s: float) -> None:
        """Nobody waits for it any more: if it was late, it would have been later still."""
        until_s = self._waiting.pop(request, None)
        if until_s is not None and now_s > until_s:
            self._count_late(now_s)

    def is_ejected(self, now_s: float) -> bool:
        num_overdue = len(self.find_overdue(now_s))
        if num_overdue and self._num_late + num_overdue >= MAX_CONSECUTIVE_LATE:
            self._eject(now_s)
        if self._rests_until_s is None:
            return False
        return now_s < self._rests_until_s or bool(self._waiting)  # one of them tries it

    def find_overdue(self, now_s: float) -> list[Request]:
        """Those that still wait for a first token that is late."""
        return [request for request, until_s in self._waiting.items() if now_s > until_s]

    def _count_late(self, now_s: float) -> None:
        self._num_late += 1
        if self._num_late >= MAX_CONSECUTIVE_LATE:
            self._eject(now_s)

    def _eject(self, now_s: float) -> None:
        if self._rests_until_s is not None and now_s >= self._rests_until_s:  # it was tried
            self._rest_s = min(2 * self._rest_s, MAX_EJECTION_S)
        self._rests_until_s = now_s + self._rest_s
