"""Outlier detection: finds replicas that report to be healthy, but whose first tokens are late.

The circuit of such a replica stays closed, because the replica generates tokens. The replica is
ejected: requests go to other replicas, as long as one of them is not ejected. If all replicas of a
pool are late, the pool is overloaded, and the admit stage sheds load. After the ejection time, the
replica gets one trial request at a time. If a trial's first token is in time, the ejection ends. If
the first token is late, the ejection time doubles, up to MAX_EJECTION_S. Service meshes eject
outliers in the same way, but because of errors instead of late first tokens.
"""

from typing import Final, Generic, TypeVar

# A replica is ejected after this number of late first tokens in a row. A single one may be caused
# by a long prompt or a pause of the machine.
MAX_CONSECUTIVE_LATE: Final = 3
EJECTION_S: Final = 2.0  # the first ejection time
MAX_EJECTION_S: Final = 16.0
Request = TypeVar("Request")  # any hashable object that identifies a request


class LatencyOutlierDetector(Generic[Request]):
    """The detector of one replica. All times are monotonic seconds.

    A request is overdue while its first token has not arrived and its deadline has passed.
    """

    def __init__(self) -> None:
        self._deadlines_s: dict[Request, float] = {}  # of the first tokens that have not arrived
        self._num_late = 0  # late first tokens in a row, without requests in flight
        self._ejected_until_s: float | None = None  # None: not ejected
        self._ejection_s = EJECTION_S

    def on_request(self, request: Request, *, until_s: float) -> None:
        """Add a request. Its first token is late after `until_s`."""
        self._deadlines_s[request] = until_s

    def on_first_token(self, request: Request, now_s: float) -> None:
        """Count the first token as in time or late. Calls for later tokens are ignored."""
        until_s = self._deadlines_s.pop(request, None)
        if until_s is None:
            return
        if now_s > until_s:
            self._count_late(now_s)
        else:
            self._num_late, self._ejected_until_s, self._ejection_s = 0, None, EJECTION_S

    def on_ended(self, request: Request, now_s: float) -> None:
        """Remove a request. If it was overdue, its first token counts as late."""
        until_s = self._deadlines_s.pop(request, None)
        if until_s is not None and now_s > until_s:
            self._count_late(now_s)

    def is_ejected(self, now_s: float) -> bool:
        """Return whether other replicas are preferred.

        This also ejects the replica if too many first tokens were late or are overdue.
        """
        num_overdue = len(self.find_overdue(now_s))
        # If no request is overdue, `_count_late` has already ejected the replica if necessary.
        if num_overdue and self._num_late + num_overdue >= MAX_CONSECUTIVE_LATE:
            self._eject(now_s)
        if self._ejected_until_s is None:
            return False
        is_trial_in_flight = bool(self._deadlines_s)
        return now_s < self._ejected_until_s or is_trial_in_flight

    def find_overdue(self, now_s: float) -> list[Request]:
        """Return the overdue requests."""
        return [request for request, until_s in self._deadlines_s.items() if now_s > until_s]

    def _count_late(self, now_s: float) -> None:
        self._num_late += 1
        if self._num_late >= MAX_CONSECUTIVE_LATE:
            self._eject(now_s)

    def _eject(self, now_s: float) -> None:
        if self._ejected_until_s is not None and now_s >= self._ejected_until_s:  # a late trial
            self._ejection_s = min(2 * self._ejection_s, MAX_EJECTION_S)
        self._ejected_until_s = now_s + self._ejection_s
