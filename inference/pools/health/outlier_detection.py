"""Outlier detection: finds replicas whose first tokens are late although they report to be healthy.

The circuit of such a replica stays closed, because the replica generates tokens. Requests go to
other replicas, as long as one of them is not late. If all replicas of a pool are late, the pool is
overloaded, which admission handles. After the ejection time, one request at a time tries the
replica. If its first token is in time, the ejection ends; if it is late, the ejection time doubles.
Service meshes eject outliers in the same way, by errors instead of first tokens.
"""

from typing import Final, Generic, TypeVar

# A single late first token may be caused by a long prompt or a pause of the machine.
MAX_CONSECUTIVE_LATE: Final = 3
EJECTION_S: Final = 2.0  # the first ejection time
MAX_EJECTION_S: Final = 16.0  # each late trial doubles the ejection time
Request = TypeVar("Request")


class LatencyOutlierDetector(Generic[Request]):
    """The detector of one replica. All times are monotonic seconds."""

    def __init__(self) -> None:
        self._deadlines_s: dict[Request, float] = {}  # deadline of the first token
        self._num_late = 0  # late first tokens in a row, without requests that still wait
        self._ejected_until_s: float | None = None  # None: not late
        self._ejection_s = EJECTION_S

    def on_request(self, request: Request, *, until_s: float) -> None:
        """Add a request. Its first token is late after `until_s`."""
        self._deadlines_s[request] = until_s

    def on_first_token(self, request: Request, now_s: float) -> None:
        """Note the first token. Calls for later tokens are ignored."""
        until_s = self._deadlines_s.pop(request, None)
        if until_s is None:
            return
        if now_s > until_s:
            self._count_late(now_s)
        else:
            self._num_late, self._ejected_until_s, self._ejection_s = 0, None, EJECTION_S

    def on_abandoned(self, request: Request, now_s: float) -> None:
        """Remove a request. If it was already late, it counts as late."""
        until_s = self._deadlines_s.pop(request, None)
        if until_s is not None and now_s > until_s:
            self._count_late(now_s)

    def is_ejected(self, now_s: float) -> bool:
        num_overdue = len(self.find_overdue(now_s))
        if num_overdue and self._num_late + num_overdue >= MAX_CONSECUTIVE_LATE:
            self._eject(now_s)
        if self._ejected_until_s is None:
            return False
        is_trial_in_flight = bool(self._deadlines_s)
        return now_s < self._ejected_until_s or is_trial_in_flight

    def find_overdue(self, now_s: float) -> list[Request]:
        """Return the requests that still wait for a late first token."""
        return [request for request, until_s in self._deadlines_s.items() if now_s > until_s]

    def _count_late(self, now_s: float) -> None:
        self._num_late += 1
        if self._num_late >= MAX_CONSECUTIVE_LATE:
            self._eject(now_s)

    def _eject(self, now_s: float) -> None:
        if self._ejected_until_s is not None and now_s >= self._ejected_until_s:  # a late trial
            self._ejection_s = min(2 * self._ejection_s, MAX_EJECTION_S)
        self._ejected_until_s = now_s + self._ejection_s
