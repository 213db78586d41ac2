"""One fault after the other, under load, and one line of figures for each.

calm | begin ... hold ... end | until all are served again | until all that was sent is billed
"""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from tests.benchmarks.figures import Report, percentile, say
from tests.benchmarks.programs import Neighbours
from tests.chaos.billed import settled_balance
from tests.chaos.leaks import grown, held_in
from tests.chaos.ledger import NOTHING, Balance
from tests.chaos.load import Crowd
from tests.chaos.notes import Note
from tests.chaos.scenario import Scenario
from tests.chaos.world import World

MAX_TIMES_CALM: Final = 1.5  # the quiet tenant's first token
_WARM_UP_S: Final = 10.0  # everybody's first request takes longer
_CALM_S: Final = 5.0
_STEADY_S: Final = 3.0  # so long all must be served before it counts as recovered
_RECOVERY_S: Final = 60.0
_BILLING_S: Final = 90.0  # a dead worker's entries are claimed after 30 s
_LOOK_EVERY_S: Final = 0.2
_MISTAKES: Final = ("missing", "doubled", "different", "unseen", "broken")


@dataclass(slots=True)
class Run:
    world: World
    crowd: Crowd  # its tenant is the quiet one
    report: Report
    hold_s: float | None = None  # of faults that last; None: as long as each says itself
    calm: list[Note] = field(default_factory=list)  # the quiet tenant's, of all calm times
    balance: Balance = NOTHING  # of all so far

    def all_of(self, scenarios: Iterable[Scenario]) -> None:
        time.sleep(_WARM_UP_S)
        for scenario in scenarios:
            scenario.prepare(self.world)
            say(f"{scenario.name}: calm")
            self._wait_calm()
            self._one(scenario)

    def _one(self, scenario: Scenario) -> None:
        before = held_in(self.world)
        neighbours, began_s = Neighbours(), time.time()
        say(f"{scenario.name}: begins")
        try:
            scenario.begin(self.world)
            self._pass(scenario)
        finally:
            scenario.end(self.world)
        ended_s = time.time()
        say(f"{scenario.name}: has ended")
        recovery = self._recovered(ended_s)
        notes = [note for note in self.world.notebook.read() if note.at_s >= began_s]
        balance, billed_s = settled_balance(
            self.world, self.world.notebook.read, patience_s=_BILLING_S
        )
        figures = Figures(notes, self._changed(balance), recovery, billed_s)
        leaks = grown(before, held_in(self.world))
        others = round(neighbours.num_cores(), 2)
        self._tell(
            scenario, figures, leaks, fault_s=round(ended_s - began_s, 1), others_cores=others
        )

    def _pass(self, scenario: Scenario) -> None:
        hold_s = self.hold_s if self.hold_s is not None and scenario.hold_s else scenario.hold_s
        until_s = time.monotonic() + hold_s
        while time.monotonic() < until_s:
            self.world.revive()
            time.sleep(_LOOK_EVERY_S)

    def _wait_calm(self) -> None:
        began_s = time.time()
        while time.time() < began_s + _CALM_S:
            self.world.revive()
            time.sleep(_LOOK_EVERY_S)
        self.calm += [note for note in self.world.notebook.since(began_s) if self._is_quiet(note)]

    def _recovered(self, ended_s: float) -> "Recovery":
        deadline_s = time.monotonic() + _RECOVERY_S
        ready_s = None
        while True:
            self.world.revive()
            now_s = time.time()
            if ready_s is None and self.world.is_ready():
                ready_s = round(now_s - ended_s, 1)
            bad = [note.at_s for note in self.world.notebook.since(ended_s) if _is_bad(note)]
            last_s = max(bad, default=ended_s)
            is_steady = now_s - last_s >= _STEADY_S and bool(
                self.world.notebook.since(now_s - _STEADY_S)
            )
            if (ready_s is not None and is_steady) or time.monotonic() > deadline_s:
                return Recovery(round(last_s - ended_s, 1) if is_steady else None, ready_s)
            time.sleep(_LOOK_EVERY_S)

    def _changed(self, balance: Balance) -> dict[str, int]:
        """What was noted and billed so far; mistakes since the balance before."""
        before, now = asdict(self.balance), asdict(balance)
        self.balance = balance
        return now | {name: now[name] - before[name] for name in _MISTAKES}

    def _tell(
        self, scenario: Scenario, figures: "Figures", leaks: dict[str, Any], **more: float
    ) -> None:
        quiet = [note for note in figures.notes if self._is_quiet(note)]
        self.report.judged(
            scenario.name,
            figures.num_failed,
            "requests failed visibly",
            passed=figures.num_failed == 0 and self.balance.is_even,
            target="none, and all billed once",
            **more,
            **figures.told(),
            **scenario.told(figures.notes),
            quiet_first_ms={"calm": _p99(self.calm), "fault": _p99(quiet), "n": len(quiet)},
            grown=leaks,
        )

    def _is_quiet(self, note: Note) -> bool:
        return note.tenant == self.crowd.tenant


@dataclass(frozen=True, slots=True)
class Recovery:
    """In seconds since the fault's end; None: not within a minute."""

    served_s: float | None  # to the last request that was not served at once
    ready_s: float | None  # until all parts were there and ready


@dataclass(frozen=True, slots=True)
class Figures:
    notes: Sequence[Note]  # from the fault's beginning to the recovery
    balance: dict[str, int]
    recovery: Recovery
    billed_s: float  # from the recovery on

    @property
    def num_failed(self) -> int:
        return sum(note.is_failed for note in self.notes)

    def told(self) -> dict[str, Any]:
        endings = Counter(note.ending for note in self.notes)
        return {
            "sent": len(self.notes),
            "completed": sum(note.is_served for note in self.notes),
            "shed": sum(note.is_shed for note in self.notes),
            "failed": self.num_failed,
            "asked_again": sum(note.attempts > 1 for note in self.notes),
            "endings": dict(endings.most_common()),
            "ledger": self.balance,
            "recovered_s": {
                "served": self.recovery.served_s,
                "ready": self.recovery.ready_s,
                "billed": round(self.billed_s, 1),  # what was noted until then
            },
        }


def _is_bad(note: Note) -> bool:
    return not note.is_served or note.attempts > 1


def _p99(notes: Iterable[Note]) -> float | None:
    times = [note.first_ms for note in notes if note.first_ms is not None]
    return round(percentile(times, 99), 1) if times else None
