"""The runner that plants faults and runs their tests, here in a folder with one small test."""

from pathlib import Path

import pytest

from tests.faults.fault import BadFault, Fault
from tests.faults.results import Results, summary
from tests.faults.scratch import Scratch
from tests.faults.trial import NoVerdict, Verdict, find_failing_tests, parse_failed_test, try_tests

SUM = "def add(a, b):\n    return a + b\n"
TEST = "from sums import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    (tmp_path / "sums.py").write_text(SUM)
    (tmp_path / "test_sums.py").write_text(TEST)
    return Scratch(tmp_path)


def _make_fault(replace: str, *, file: str = "sums.py", suite: str = "default") -> Fault:
    """Return a fault that replaces `a + b`."""
    return Fault(
        id="sums-wrong",
        area="money",
        file=file,
        find="a + b",
        replace=replace,
        breaks="The sum is wrong.",
        tests=("test_sums.py",),
        suite=suite,
    )


def _run_test(scratch: Scratch, *, limit_s: float = 60) -> Verdict:
    return try_tests(scratch, ["test_sums.py"], limit_s=limit_s)


def test_a_fault_is_caught_by_a_failing_test_and_removed_afterwards(scratch: Scratch) -> None:
    before = _run_test(scratch)

    with scratch.planted(_make_fault("a - b")):
        with_fault = _run_test(scratch)
    after = _run_test(scratch)

    assert with_fault.caught_by == "test_sums.py::test_add"
    assert (before.caught_by, after.caught_by) == (None, None)
    assert (scratch.root / "sums.py").read_text() == SUM


def test_a_fault_of_the_deep_suite_runs_deep_tests(scratch: Scratch) -> None:
    (scratch.root / "pytest.ini").write_text(
        "[pytest]\naddopts = -m 'not deep'\nmarkers =\n  deep: random or long\n"
    )
    tests = scratch.root / "test_sums.py"
    tests.write_text(f"import pytest\n\npytestmark = pytest.mark.deep\n{tests.read_text()}")
    fault = _make_fault("a - b", suite="deep")

    with scratch.planted(fault):
        verdict = try_tests(scratch, fault.pytest_arguments, limit_s=60)

    assert verdict.caught_by == "test_sums.py::test_add"


def test_a_fault_that_hangs_is_caught_by_the_time_limit(scratch: Scratch) -> None:
    with scratch.planted(_make_fault("__import__('time').sleep(600)")):
        verdict = _run_test(scratch, limit_s=3)

    assert verdict.caught_by == "the time limit of 3 s"


def test_tests_that_fail_without_a_fault_are_reported(scratch: Scratch) -> None:
    (scratch.root / "test_wrong.py").write_text(
        "import pytest\n\n\n"
        "@pytest.mark.parametrize('name', ['a b', 'c - d'])\n"
        "def test_wrong(name):\n    assert name == 'a b'\n"
    )
    (scratch.root / "test_unreadable.py").write_text("import no_such_module\n")
    wrong_test, unreadable = "test_wrong.py::test_wrong", "test_unreadable.py"
    tests = ["test_sums.py::test_add", wrong_test, unreadable]

    assert find_failing_tests(scratch, tests, limit_s=60) == {wrong_test, unreadable}


def test_the_file_is_restored_after_an_exception(scratch: Scratch) -> None:
    with pytest.raises(RuntimeError), scratch.planted(_make_fault("a - b")):
        raise RuntimeError

    assert (scratch.root / "sums.py").read_text() == SUM


def test_the_error_for_a_missing_file_names_the_fault_and_the_file(scratch: Scratch) -> None:
    with (
        pytest.raises(BadFault, match=r"sums-wrong: there is no file products\.py"),
        scratch.planted(_make_fault("a * b", file="products.py")),
    ):
        pass


def test_processes_import_the_copy_before_installed_packages(scratch: Scratch) -> None:
    roots = scratch.environment["PYTHONPATH"].split(":")

    assert roots == [str(scratch.root / name) for name in ("", "platform", "platform/ide")]


def test_the_first_failed_test_is_read_from_the_output_of_pytest() -> None:
    output = "..F\nFAILED tests/a.py::test_x[a b] - assert 1 == 2\nFAILED tests/b.py::test_y\n"

    # The exit codes of pytest: 0 means passed, 1 failed, 2 interrupted (here by an import error).
    assert parse_failed_test(0, output) is None
    assert parse_failed_test(1, output) == "tests/a.py::test_x[a b]"
    assert parse_failed_test(2, "ERROR tests/a.py - ImportError: sums\n") == "tests/a.py"


def test_a_failure_of_pytest_itself_gives_no_verdict() -> None:
    with pytest.raises(NoVerdict, match="pytest ended with 4"):
        parse_failed_test(4, "no such file")


def test_a_resumed_run_uses_earlier_results(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    fault = _make_fault("a - b")
    first = Results(path, resume=False)

    first.add_fault(fault, Verdict(caught_by=None, seconds=1.0))
    assert Results(path, resume=True).is_missed(fault)

    first.add_fault(fault, Verdict(caught_by="tests/test_sums.py::test_add[1]", seconds=1.0))
    assert Results(path, resume=True).is_caught(fault)
    assert not Results(path, resume=False).is_caught(fault)


def test_a_test_that_also_fails_without_the_fault_does_not_catch_it() -> None:
    fault, test = _make_fault("a - b"), "tests/test_sums.py::test_add"
    results = Results(path=None, resume=False)
    results.add_fault(fault, Verdict(caught_by=f"{test}[1]", seconds=1.0))
    assert results.unconfirmed([fault]) == [test]

    results.add_confirmation(test, fails=True)

    assert not results.is_caught(fault)
    assert results.unconfirmed([fault]) == []


def test_the_summary_counts_by_area_and_lists_missed_faults() -> None:
    fault, results = _make_fault("a - b"), Results(path=None, resume=False)
    results.add_fault(fault, Verdict(caught_by=None, seconds=1.0))

    lines = summary([fault], results).splitlines()

    # The columns: the area, and how many faults were planted, caught, missed, or have no verdict.
    assert "| money | 1 | 0 | 1 | 0 |" in lines
    assert "- `sums-wrong` (money): The sum is wrong." in lines
