"""The runner of the planted faults, without its copy of the whole tree."""

from pathlib import Path

import pytest

from tests.faults.fault import BadFault, Fault
from tests.faults.results import FAULT, Results, summary
from tests.faults.scratch import Scratch
from tests.faults.trial import NoVerdict, Verdict, failed_test, try_files, try_tests

SUM = "def add(a, b):\n    return a + b\n"
TEST = "from sums import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    (tmp_path / "sums.py").write_text(SUM)
    (tmp_path / "test_sums.py").write_text(TEST)
    return Scratch(tmp_path)


def _fault(replace: str, *, file: str = "sums.py") -> Fault:
    return Fault(
        id="sums-wrong",
        area="money",
        file=file,
        find="a + b",
        replace=replace,
        breaks="The sum is wrong.",
        tests=("test_sums.py",),
        suite="default",
    )


def _try(scratch: Scratch, *, limit_s: float = 60) -> Verdict:
    return try_tests(scratch, ["test_sums.py"], limit_s=limit_s)


def test_a_fault_is_caught_by_the_test_that_fails_and_is_gone_afterwards(scratch: Scratch) -> None:
    assert _try(scratch).caught_by is None
    with scratch.planted(_fault("a - b")):
        assert _try(scratch).caught_by == "test_sums.py::test_add"
    assert (scratch.root / "sums.py").read_text() == SUM
    assert _try(scratch).caught_by is None


def test_a_fault_that_hangs_is_caught_by_the_time_limit(scratch: Scratch) -> None:
    with scratch.planted(_fault("__import__('time').sleep(600)")):
        assert _try(scratch, limit_s=3).caught_by == "the time limit of 3 s"


def test_each_file_of_tests_has_a_verdict_of_its_own(scratch: Scratch) -> None:
    files = ("test_sums.py", "test_wrong.py", "test_unreadable.py", "test_nothing.py")
    (scratch.root / files[1]).write_text("def test_wrong():\n    assert False\n")
    (scratch.root / files[2]).write_text("import no_such_module\n")
    (scratch.root / files[3]).write_text("")
    verdicts = try_files(scratch, files, limit_s=60)
    assert [verdicts[name].caught_by for name in files] == [
        None,
        "test_wrong",
        "test_unreadable",
        "no test has run",
    ]


def test_the_file_is_restored_when_a_test_raises(scratch: Scratch) -> None:
    with pytest.raises(RuntimeError), scratch.planted(_fault("a - b")):
        raise RuntimeError
    assert (scratch.root / "sums.py").read_text() == SUM


def test_a_file_that_is_not_there_is_named(scratch: Scratch) -> None:
    with (
        pytest.raises(BadFault, match=r"sums-wrong: there is no file products\.py"),
        scratch.planted(_fault("a * b", file="products.py")),
    ):
        pass


def test_processes_import_the_copy_before_what_is_installed(scratch: Scratch) -> None:
    roots = scratch.environment["PYTHONPATH"].split(":")
    assert roots == [str(scratch.root / name) for name in ("", "platform", "platform/ide")]


def test_the_first_failed_test_is_named() -> None:
    said = "..F\nFAILED tests/a.py::test_x[a b] - assert 1 == 2\nFAILED tests/b.py::test_y\n"
    assert failed_test(0, said) is None
    assert failed_test(1, said) == "tests/a.py::test_x[a b]"
    assert failed_test(2, "ERROR tests/a.py - ImportError: sums\n") == "tests/a.py"


def test_tests_that_pytest_cannot_run_say_nothing() -> None:
    with pytest.raises(NoVerdict, match="pytest ended with 4"):
        failed_test(4, "no such file")


def test_a_resumed_run_knows_what_an_earlier_one_found(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    first = Results(path, resume=False)
    caught = first.add_fault(_fault("a - b"), Verdict("test_sums.py::test_add", 1.0))
    assert Results(path, resume=True).find(FAULT, "sums-wrong") == caught
    assert Results(path, resume=False).find(FAULT, "sums-wrong") is None


def test_the_summary_names_what_no_test_has_caught() -> None:
    missed = Results(None, resume=False).add_fault(_fault("a - b"), Verdict(None, 1.0))
    assert summary([missed]) == {"money": {"caught": 0, "missed": ["sums-wrong"]}}
