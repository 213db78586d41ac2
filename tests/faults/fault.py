"""A planted fault: one small defect, as an entry of the catalogue describes it."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

REPOSITORY: Final = Path(__file__).resolve().parents[2]
CATALOGUE: Final = Path(__file__).parent / "catalogue"
AREAS: Final = (
    "isolation",
    "money",
    "permissions",
    "loss",  # of data
    "latency",
    "correctness",
    "ui",
    "supply",  # the Helm chart, images, setup and alert rules
)
SUITES: Final = ("default", "deep")
# Folders of tests, ordered by what they need: nothing, then services, then a browser.
_FOLDERS: Final = ("unit", "architecture", "integration", "functional", "browser")


class BadFault(Exception):
    """An entry of the catalogue is invalid, or its text is not in the file that it names."""


@dataclass(frozen=True, slots=True)
class Fault:
    id: str
    area: str
    file: str  # relative to the repository
    find: str  # occurs exactly once in the file
    replace: str
    breaks: str  # one sentence: the harm that the fault does
    tests: tuple[str, ...]  # files or pytest node IDs that could catch it, the cheapest first
    suite: str

    @property
    def cost(self) -> int:
        """Return the index in _FOLDERS of the fault's most expensive test."""
        return max(_FOLDERS.index(Path(test).parts[1]) for test in self.tests)

    @property
    def pytest_arguments(self) -> tuple[str, ...]:
        """Return the pytest arguments for the fault's tests.

        Without `-m ""`, pytest leaves out the deep suite.
        """
        return (*(("-m", "") if self.suite == "deep" else ()), *self.tests)

    @property
    def needs_services(self) -> bool:
        # Architecture tests need services, too: they read the database.
        return self.cost > _FOLDERS.index("unit")

    def plant_in(self, text: str) -> str:
        """Return `text` with the fault.

        Raises BadFault.
        """
        count = text.count(self.find)
        if count != 1:
            raise BadFault(f"{self.id}: its text occurs {count} times in {self.file}, not once.")
        return text.replace(self.find, self.replace)


def read_catalogue(folder: Path = CATALOGUE) -> list[Fault]:
    """Return the whole catalogue, the faults with the cheapest tests first.

    Raises BadFault.
    """
    faults = [fault for path in sorted(folder.glob("*.toml")) for fault in _read_file(path)]
    return sorted(faults, key=lambda fault: fault.cost)


def _read_file(path: Path) -> Iterator[Fault]:
    for entry in tomllib.loads(path.read_text())["fault"]:
        try:
            yield _read_entry(entry)
        except (LookupError, TypeError, ValueError) as error:
            raise BadFault(f"{path.name}, {entry.get('id', 'an entry')}: {error!r}") from error


def _read_entry(entry: dict[str, Any]) -> Fault:
    fault = Fault(
        **{**entry, "tests": tuple(entry["tests"]), "suite": entry.get("suite", "default")}
    )
    if fault.area not in AREAS or fault.suite not in SUITES:
        raise ValueError(f"area {fault.area!r} or suite {fault.suite!r} is unknown")
    if not fault.tests or fault.find == fault.replace:
        raise ValueError("the fault changes nothing, or names no test")
    assert fault.cost >= 0  # raises ValueError or IndexError for a test in no known folder
    return fault
