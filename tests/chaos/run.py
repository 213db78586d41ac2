"""A run: one fault after the other, under load, and one line of results for each.

Before a fault there is a calm phase. The fault begins, lasts for some seconds and ends. Then the
run waits until all requests are served again, and until all completions are billed.
"""

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from subprocess import CalledProcessError
from typing import Any, Final

import psycopg

from caret.local.errors import ServiceFailed
from tests.benchmarks.processes import Neighbours
from tests.benchmarks.results import Report, say
from tests.chaos.billing_check import NOTHING, Balance
from tests.chaos.client_log import Note
from tests.chaos.environment import World
from tests.chaos.fault_result import (
    FaultResult,
    QuietTenant,
    Recovery,
    first_token_p99_ms,
    is_disturbed,
)
from tests.chaos.load import ClientsProcess
from tests.chaos.resource_usage import (
    leaked_requests_and_connections,
    resource_growth,
    resources_by_process,
)
from tests.chaos.scenario import Scenario
from tests.chaos.usage_rows import settled_balance

_WARM_UP_S: Final = 10.0  # every client's first request takes longer
_CALM_S: Final = 5.0
# The system has recovered if all requests were served for this long.
_STEADY_S: Final = 3.0
_RECOVERY_S: Final = 60.0
_BILLING_S: Final = 90.0  # a dead worker's entries are claimed after 30 s
_REST_S: Final = 40.0  # until pings have closed connections whose clients disappeared silently
_POLL_S: Final = 0.2
_MISTAKES: Final = ("missing", "doubled", "different", "unseen", "broken")
_SCENARIO_ERRORS: Final = (OSError, TimeoutError, ServiceFailed, psycopg.Error, CalledProcessError)


@dataclass(slots=True)
class Run:
    """Injects faults and reports their results."""

    world: World
    clients_process: ClientsProcess  # its tenant is the quiet one
    report: Report
    # Duration of faults that do not end at once; None: each fault's own duration.
    hold_s: float | None = None
    calm: list[Note] = field(default_factory=list)  # the quiet tenant's, of all calm phases
    balance: Balance = NOTHING  # of the whole run, up to the previous fault

    def run_all(self, scenarios: Iterable[Scenario]) -> None:
        time.sleep(_WARM_UP_S)
        for scenario in scenarios:
            try:
                self._run_scenario(scenario)
            except _SCENARIO_ERRORS as error:  # the other scenarios still run
                self._report_error(scenario, error)

    def check_at_rest(self) -> None:
        """Stop the clients and report the requests and connections that the gateways still hold."""
        self.clients_process.stop()
        deadline_s = time.monotonic() + _REST_S
        while (
            still_held_resources := leaked_requests_and_connections(self.world)
        ) and time.monotonic() < deadline_s:
            time.sleep(_POLL_S)
        target = "no completion, no connection"
        self.report.judged(
            "at-rest",
            sum(still_held_resources.values()),
            "held",
            passed=not still_held_resources,
            target=target,
            held=still_held_resources,
        )

    def _run_scenario(self, scenario: Scenario) -> None:
        scenario.prepare(self.world)
        say(f"{scenario.name}: calm")
        self._wait_calm()
        before, neighbours, began_s = resources_by_process(self.world), Neighbours(), time.time()
        self._inject(scenario)
        ended_s = time.time()
        recovery = self._wait_for_recovery(ended_s)
        notes = self.world.notebook.since(began_s)
        read_notes = self.world.notebook.read
        balance, billed_s = settled_balance(self.world, read_notes, timeout_s=_BILLING_S)
        fault_result = FaultResult(
            notes=notes,
            quiet=self._measure_quiet_tenant(notes),
            ledger=self._update_ledger(balance),
            is_balanced=balance.is_balanced,
            recovery=recovery,
            billed_s=billed_s,
            fault_s=ended_s - began_s,
            cores_used_by_others=neighbours.num_cores(),
            delays_tokens=scenario.delays_tokens,
        )
        self._report(
            scenario, fault_result, grown=resource_growth(before, resources_by_process(self.world))
        )

    def _inject(self, scenario: Scenario) -> None:
        say(f"{scenario.name}: beginning")
        try:
            scenario.begin(self.world)
            self._hold(scenario)
        finally:
            scenario.end(self.world)
        say(f"{scenario.name}: ended")

    def _hold(self, scenario: Scenario) -> None:
        ends_at_once = scenario.hold_s == 0
        hold_s = scenario.hold_s if ends_at_once or self.hold_s is None else self.hold_s
        until_s = time.monotonic() + hold_s
        while time.monotonic() < until_s:
            self.world.revive()
            time.sleep(_POLL_S)

    def _wait_calm(self) -> None:
        began_s = time.time()
        while time.time() < began_s + _CALM_S:
            self.world.revive()
            time.sleep(_POLL_S)
        self.calm += filter(self._is_quiet, self.world.notebook.since(began_s))

    def _wait_for_recovery(self, ended_s: float) -> Recovery:
        deadline_s = time.monotonic() + _RECOVERY_S
        ready_s = None
        while True:
            self.world.revive()
            now_s = time.time()
            if ready_s is None and self.world.is_ready():
                ready_s = round(now_s - ended_s, 1)
            notes = self.world.notebook.since(ended_s)
            last_disturbed_s = max(
                (note.at_s for note in notes if is_disturbed(note)), default=ended_s
            )
            # Without new notes, nothing shows that requests are served.
            has_new_notes = bool(self.world.notebook.since(now_s - _STEADY_S))
            is_steady = now_s - last_disturbed_s >= _STEADY_S and has_new_notes
            if (ready_s is not None and is_steady) or time.monotonic() > deadline_s:
                served_s = round(last_disturbed_s - ended_s, 1) if is_steady else None
                return Recovery(served_s, ready_s)
            time.sleep(_POLL_S)

    def _update_ledger(self, balance: Balance) -> dict[str, int]:
        """Return the numbers of the whole run, but the mistakes only since the previous fault.

        Sets `self.balance`, for the next fault.
        """
        before, now = asdict(self.balance), asdict(balance)
        self.balance = balance
        return now | {name: now[name] - before[name] for name in _MISTAKES}

    def _measure_quiet_tenant(self, notes: Iterable[Note]) -> QuietTenant:
        quiet = [note for note in notes if self._is_quiet(note)]
        return QuietTenant(first_token_p99_ms(self.calm), first_token_p99_ms(quiet), len(quiet))

    def _is_quiet(self, note: Note) -> bool:
        return note.tenant == self.clients_process.tenant

    def _report(self, scenario: Scenario, fault_result: FaultResult, **fields: Any) -> None:
        self.report.judged(
            scenario.name,
            fault_result.num_failed,
            "requests failed visibly",
            passed=fault_result.has_passed,
            target=fault_result.target,
            **fault_result.details(),
            **scenario.details(fault_result.notes),
            **fields,
        )

    def _report_error(self, scenario: Scenario, error: Exception) -> None:
        reason = f"{type(error).__name__}: {error}"
        self.report.judged(
            scenario.name, 0, "scenarios completed", passed=False, target="1", reason=reason
        )
