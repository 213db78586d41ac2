"""The results of one fault, and the decision whether Caret has withstood it, without I/O."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.benchmarks.processes import MAX_NEIGHBOUR_CORES
from tests.benchmarks.results import percentile
from tests.chaos.client_log import Note

# How slow the quiet tenant's first token may be, in multiples of its time without a fault.
MAX_TIMES_CALM: Final = 1.5
_TARGET: Final = "no request fails, each completion is billed once"


@dataclass(frozen=True, slots=True)
class Recovery:
    """Times in seconds since the fault's end; None: not within a minute."""

    served_s: float | None  # to the last request that was not served at once
    ready_s: float | None  # until all services were up and ready


@dataclass(frozen=True, slots=True)
class QuietTenant:
    """The tenant with few requests: p99 of the time to its first token; None: no token came.

    Without a token during the fault, the tenant counts as slowed down: its requests may all have
    been shed, which is no failure of a request.
    """

    calm_ms: float | None  # without a fault
    fault_ms: float | None  # from the start of the fault to the recovery
    num_requests: int  # of this tenant, from the start of the fault to the recovery

    @property
    def is_slowed_down(self) -> bool:
        if self.calm_ms is None:
            return False
        return self.fault_ms is None or self.fault_ms > MAX_TIMES_CALM * self.calm_ms


@dataclass(frozen=True, slots=True)
class FaultResult:
    """All results of one fault."""

    notes: Sequence[Note]  # from the fault's beginning to the recovery
    quiet: QuietTenant
    # By field of `tests.chaos.billing_check.Balance`. The mistakes (`_MISTAKES` in
    # tests/chaos/run.py) are those since the previous fault; the other numbers are those of the
    # whole run so far.
    ledger: Mapping[str, int]
    is_balanced: bool  # `Balance.is_balanced` for the whole run so far
    recovery: Recovery
    billed_s: float  # from the recovery until all noted completions were billed
    fault_s: float  # from the start of the fault to its end
    cores_used_by_others: float  # cores that other processes used during the fault
    delays_tokens: bool = False  # the fault itself delays tokens, so late tokens are no failure

    @property
    def target(self) -> str:
        if self.delays_tokens:
            return _TARGET
        return f"{_TARGET}, quiet tenant's p99 at most {MAX_TIMES_CALM:g} times its calm p99"

    @property
    def num_failed(self) -> int:
        return sum(note.is_failed for note in self.notes)

    @property
    def has_passed(self) -> bool:
        # If other processes use the cores, a slow token proves nothing.
        is_meaningful = self.cores_used_by_others <= MAX_NEIGHBOUR_CORES and not self.delays_tokens
        is_too_slow = is_meaningful and self.quiet.is_slowed_down
        return self.num_failed == 0 and self.is_balanced and not is_too_slow

    def details(self) -> dict[str, Any]:
        endings = Counter(note.ending for note in self.notes)
        return {
            "fault_s": round(self.fault_s, 1),
            "cores_used_by_others": round(self.cores_used_by_others, 2),
            "sent": len(self.notes),
            "completed": sum(note.is_served for note in self.notes),
            "shed": sum(note.is_shed for note in self.notes),
            "failed": self.num_failed,
            "retried": sum(note.attempts > 1 for note in self.notes),
            "endings": dict(endings.most_common()),
            "ledger": dict(self.ledger),
            "recovered_s": {
                # The first two times begin at the end of the fault, the third at the recovery.
                "served": self.recovery.served_s,
                "ready": self.recovery.ready_s,
                # until all requests were billed that clients had noted before the recovery
                "billed": round(self.billed_s, 1),
            },
            "quiet_first_ms": {
                "calm": self.quiet.calm_ms,
                "fault": self.quiet.fault_ms,
                "n": self.quiet.num_requests,
            },
        }


def is_disturbed(note: Note) -> bool:
    """Return True if the request was not served at the first attempt."""
    return not note.is_served or note.attempts > 1


def first_token_p99_ms(notes: Iterable[Note]) -> float | None:
    """Return the 99th percentile of the time to the first token; None: no token came."""
    times = [note.first_ms for note in notes if note.first_ms is not None]
    return round(percentile(times, 99), 1) if times else None
