"""Trials: run tests in a scratch copy and report which of them fail."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from tests.faults.scratch import Scratch

# The test of a line such as "FAILED tests/unit/test_a.py::test_b[1] - AssertionError: ...".
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)
_PASSED: Final = 0
_FAILURES: Final = (1, 2)  # failed tests; interrupted by an error during collection
_TAIL_CHARS: Final = 2_000
_OPTIONS: Final = (
    *("-q", "--tb=short"),
    *("-p", "no:cacheprovider"),
    *("-p", "no:schemathesis"),  # takes a second to import; tests use it without its plugin
)
_running: Final[set[subprocess.Popen[bytes]]] = set()


class NoVerdict(Exception):
    """pytest did not run the tests, so the result is unknown."""


@dataclass(frozen=True, slots=True)
class Verdict:
    caught_by: str | None  # the first test that failed; None: all passed
    seconds: float
    is_timeout: bool = False


def try_tests(scratch: Scratch, arguments: Sequence[str], *, limit_s: float) -> Verdict:
    """Run pytest with `arguments` until a test fails. Exceeding `limit_s` is a failure.

    Raises NoVerdict.
    """
    began_s = time.monotonic()
    code, output = _run_pytest(scratch, ["-x", *arguments], limit_s=limit_s)
    seconds = time.monotonic() - began_s
    if code is None:
        return Verdict(f"the time limit of {limit_s:.0f} s", seconds, is_timeout=True)
    return Verdict(parse_failed_test(code, output), seconds)


def find_failing_tests(scratch: Scratch, tests: Collection[str], *, limit_s: float) -> set[str]:
    """Return the tests (files or functions) that fail when all of them run.

    Raises NoVerdict.
    """
    # `-m ""` runs all these tests, also those that pyproject.toml excludes by their marker.
    options = ("--continue-on-collection-errors", "-m", "")
    code, output = _run_pytest(scratch, [*options, *tests], limit_s=limit_s)
    if code is None:
        raise NoVerdict(f"without a fault, pytest exceeded the time limit of {limit_s:.0f} s")
    if code not in (_PASSED, *_FAILURES):
        raise NoVerdict(f"pytest ended with {code} without a fault: {output[-_TAIL_CHARS:]}")
    failed_names = {strip_parameters(name) for name in _FAILED.findall(output)}
    uncollected_files = {name for name in failed_names if "::" not in name}
    files_with_failures = {name.partition("::")[0] for name in failed_names}
    return {
        test
        for test in tests
        # A function that failed, a function of a file with a collection error, or a file.
        if test in failed_names
        or test.partition("::")[0] in uncollected_files
        or test in files_with_failures
    }


def strip_parameters(name: str) -> str:
    """Return the name of a test function, given the name of a test that may have parameters."""
    return name.partition("[")[0]


def parse_failed_test(code: int, output: str) -> str | None:
    """Return the test that failed, given pytest's exit code and output.

    Raises NoVerdict.
    """
    if code == _PASSED:
        return None
    if code not in _FAILURES:
        raise NoVerdict(f"pytest ended with {code}: {output[-_TAIL_CHARS:]}")
    match = _FAILED.search(output)
    if match is None:
        raise NoVerdict(f"pytest failed before the tests: {output[-_TAIL_CHARS:]}")
    return match.group(1)


def end_trials() -> None:
    """End the running tests; their trials raise NoVerdict."""
    for process in list(_running):
        _end(process)


def _run_pytest(
    scratch: Scratch, arguments: Sequence[str], *, limit_s: float
) -> tuple[int | None, str]:
    """Return the exit code (None: the limit was exceeded) and the output."""
    # A file, because a process that outlives pytest would keep a pipe open.
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *_OPTIONS, *arguments],
            cwd=scratch.root,
            env=scratch.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        _running.add(process)
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(process)
            _running.discard(process)
        output.seek(0)
        return code, output.read()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill pytest and its process group, if pytest still runs.

    Test services have process groups of their own. Their watchdog ends them when pytest is killed.
    """
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
