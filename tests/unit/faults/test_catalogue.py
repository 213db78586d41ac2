"""The catalogue of faults that are planted in the code to check that tests fail.

Each entry must match the code; otherwise it checks nothing.
"""

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.faults.fault import REPOSITORY, BadFault, Fault, read_catalogue

ENTRY = """
[[fault]]
id = "sums-one-less"
area = "{area}"
file = "sums.py"
find = "limit"
replace = "limit - 1"
breaks = "A request that just fits the limit is rejected."
tests = ["{test}"]
"""


@pytest.fixture(scope="module")
def catalogue() -> list[Fault]:
    return read_catalogue()


def _write_entry(folder: Path, *, area: str = "money", test: str = "tests/unit/test_x.py") -> None:
    """Write a catalogue with one fault."""
    (folder / "sums.toml").write_text(ENTRY.format(area=area, test=test))


def test_every_fault_has_a_unique_id(catalogue: list[Fault]) -> None:
    counts = Counter(fault.id for fault in catalogue)

    assert [name for name, count in counts.items() if count > 1] == []


def test_every_fault_can_be_planted_and_the_file_still_compiles(
    catalogue: list[Fault],
) -> None:
    for fault in catalogue:
        faulty = fault.plant_in((REPOSITORY / fault.file).read_text())

        if fault.file.endswith(".py"):
            ast.parse(faulty, fault.id)


def test_every_test_named_by_a_fault_exists(catalogue: list[Fault]) -> None:
    named_tests = {test for fault in catalogue for test in fault.tests}

    missing = [test for test in sorted(named_tests) if not _test_exists(test)]

    assert missing == []


def _test_exists(test: str) -> bool:
    """Return whether there is such a test, given as `file`, `folder` or `file::function`."""
    name, _, function = test.partition("::")
    path = REPOSITORY / name
    if not function:
        return path.exists()
    return path.is_file() and f"def {function}(" in path.read_text()


def test_faults_with_the_cheapest_tests_come_first(catalogue: list[Fault]) -> None:
    costs = [fault.cost for fault in catalogue]

    assert costs == sorted(costs)


def test_a_fault_is_rejected_if_its_text_occurs_twice_or_never(tmp_path: Path) -> None:
    _write_entry(tmp_path)
    (fault,) = read_catalogue(tmp_path)

    assert fault.plant_in("if count < limit:") == "if count < limit - 1:"
    with pytest.raises(BadFault, match=r"sums-one-less: its text occurs 2 times in sums\.py"):
        fault.plant_in("limit = limit")
    with pytest.raises(BadFault, match="occurs 0 times"):
        fault.plant_in("")


@pytest.mark.parametrize(
    "entry",
    [{"area": "colour"}, {"test": "tests/elsewhere/test_x.py"}, {"test": "test_x.py"}],
)
def test_an_unknown_area_or_test_folder_is_rejected(tmp_path: Path, entry: dict[str, str]) -> None:
    _write_entry(tmp_path, **entry)

    with pytest.raises(BadFault, match=r"sums\.toml, sums-one-less"):
        read_catalogue(tmp_path)
