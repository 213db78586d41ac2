"""The results file: a JSON line for each file of tests, run without a fault, and for each fault."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tests.faults.fault import Fault
from tests.faults.trial import Verdict

BASELINE: Final = "baseline"
FAULT: Final = "fault"


@dataclass(frozen=True, slots=True)
class Result:
    kind: str  # BASELINE or FAULT
    name: str  # the file of tests, or the fault's id
    area: str
    breaks: str
    caught_by: str | None  # of a baseline: a test that fails without a fault
    seconds: float


class Results:
    def __init__(self, path: Path | None, *, resume: bool) -> None:
        self._path = path
        self._found: dict[tuple[str, str], Result] = {}
        if path is not None and resume and path.exists():
            for line in path.read_text().splitlines():
                self._keep(Result(**json.loads(line)))
        elif path is not None:
            path.write_text("")

    def find(self, kind: str, name: str) -> Result | None:
        return self._found.get((kind, name))

    def add_baseline(self, file: str, verdict: Verdict) -> Result:
        return self._add(
            Result(BASELINE, file, "", "", verdict.caught_by, round(verdict.seconds, 1))
        )

    def add_fault(self, fault: Fault, verdict: Verdict) -> Result:
        seconds = round(verdict.seconds, 1)
        return self._add(
            Result(FAULT, fault.id, fault.area, fault.breaks, verdict.caught_by, seconds)
        )

    def _add(self, result: Result) -> Result:
        self._keep(result)
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(asdict(result)) + "\n")
        return result

    def _keep(self, result: Result) -> None:
        self._found[result.kind, result.name] = result


def summary(results: Iterable[Result]) -> dict[str, Any]:
    """Return the numbers by area, and the faults that no test has caught."""
    faults = list(results)
    return {
        area: {
            "caught": sum(one.caught_by is not None for one in faults if one.area == area),
            "missed": [one.name for one in faults if one.area == area and one.caught_by is None],
        }
        for area in dict.fromkeys(one.area for one in faults)
    }
