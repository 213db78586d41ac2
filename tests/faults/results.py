"""The results file: a JSON line for each tried fault and for each confirmation."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from tests.faults.fault import AREAS, Fault
from tests.faults.trial import Verdict, strip_parameters

# A test that caught a fault, run without any fault.
CONFIRMATION: Final = "confirmation"
FAULT: Final = "fault"


@dataclass(frozen=True, slots=True)
class Result:
    kind: str  # CONFIRMATION or FAULT
    name: str  # the test, or the fault's id
    # The test that failed, or None. In a confirmation: the test, if it fails without a fault.
    caught_by: str | None
    seconds: float


class Results:
    """The results in a file. Later lines replace earlier ones of the same fault or test."""

    def __init__(self, path: Path | None, *, resume: bool) -> None:
        self._path = path
        self._results: dict[tuple[str, str], Result] = {}
        self._lock = Lock()
        if path is not None and resume and path.exists():
            for line in path.read_text().splitlines():
                self._keep(Result(**json.loads(line)))
        elif path is not None:
            path.write_text("")

    def find(self, kind: str, name: str) -> Result | None:
        return self._results.get((kind, name))

    def add_fault(self, fault: Fault, verdict: Verdict) -> Result:
        return self._add(Result(FAULT, fault.id, verdict.caught_by, round(verdict.seconds, 1)))

    def add_confirmation(self, test: str, *, fails: bool) -> None:
        self._add(Result(CONFIRMATION, test, test if fails else None, 0.0))

    def is_caught(self, fault: Fault) -> bool:
        """Return True if a test caught the fault, unless the test also fails without the fault.

        Before the test's confirmation, the fault counts as caught.
        """
        result = self.find(FAULT, fault.id)
        if result is None or result.caught_by is None:
            return False
        confirmation = self.find(CONFIRMATION, strip_parameters(result.caught_by))
        return confirmation is None or confirmation.caught_by is None

    def is_missed(self, fault: Fault) -> bool:
        result = self.find(FAULT, fault.id)
        return result is not None and result.caught_by is None

    def unconfirmed(self, faults: Iterable[Fault]) -> list[str]:
        """Return the tests that caught one of `faults` and have not yet run without a fault."""
        results = [self.find(FAULT, fault.id) for fault in faults]
        tests = [
            strip_parameters(result.caught_by) for result in results if result and result.caught_by
        ]
        return [
            test
            for test in dict.fromkeys(tests)
            # A time limit may have caught the fault instead of a test.
            if test.startswith("tests/") and not self.find(CONFIRMATION, test)
        ]

    def _add(self, result: Result) -> Result:
        with self._lock:
            self._keep(result)
            if self._path is not None:
                with self._path.open("a") as file:
                    file.write(json.dumps(asdict(result)) + "\n")
        return result

    def _keep(self, result: Result) -> None:
        self._results[result.kind, result.name] = result


def summary(faults: Sequence[Fault], results: Results) -> str:
    """Return the counts by area as a Markdown table, and the list of missed faults."""
    rows = [
        _row(area, [fault for fault in faults if fault.area == area], results) for area in AREAS
    ]
    missed = [fault for fault in faults if results.is_missed(fault)]
    return "\n".join(
        [
            "| area | planted | caught | missed | no verdict |",
            "| --- | ---: | ---: | ---: | ---: |",
            *filter(None, rows),
            _row("all", faults, results),
            *(["", "No test failed for these faults:", ""] if missed else []),
            *(f"- `{fault.id}` ({fault.area}): {fault.breaks}" for fault in missed),
        ]
    )


def _row(title: str, faults: Sequence[Fault], results: Results) -> str:
    """Return a row of the table; "": there are no faults."""
    if not faults:
        return ""
    num_caught = sum(results.is_caught(fault) for fault in faults)
    num_missed = sum(results.is_missed(fault) for fault in faults)
    num_planted = len(faults)
    # Not tried, without a verdict, or caught by a test that also fails without the fault.
    num_unknown = num_planted - num_caught - num_missed
    return f"| {title} | {num_planted} | {num_caught} | {num_missed} | {num_unknown} |"
