"""Runs tests in the scratch copy, and says whether they fail."""

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
from xml.etree import ElementTree

from tests.faults.scratch import Scratch

_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)
_PASSED: Final = 0
_FAILURES: Final = (1, 2)  # failed tests; interrupted by an error during collection
_TAIL_CHARS: Final = 2_000
_OPTIONS: Final = ("-q", "--tb=short", "-p", "no:cacheprovider")


class NoVerdict(Exception):
    """pytest itself failed, so the tests say nothing."""


@dataclass(frozen=True, slots=True)
class Verdict:
    caught_by: str | None  # the first test that failed; None: all passed
    seconds: float


def try_tests(scratch: Scratch, tests: Sequence[str], *, limit_s: float) -> Verdict:
    """Run `tests` until one fails. Tests that take longer than `limit_s` fail. Raises NoVerdict."""
    started = time.monotonic()
    code, said = _run_pytest(scratch, ["-x", *tests], limit_s=limit_s)
    seconds = time.monotonic() - started
    caught_by = f"the time limit of {limit_s:.0f} s" if code is None else failed_test(code, said)
    return Verdict(caught_by, seconds)


def try_files(scratch: Scratch, files: Collection[str], *, limit_s: float) -> dict[str, Verdict]:
    """Run all tests of `files` in one session, and return a verdict for each file."""
    report = scratch.root / "report.xml"
    options = (f"--junitxml={report}", "--override-ini=junit_family=xunit1")
    report.unlink(missing_ok=True)
    _, said = _run_pytest(
        scratch, [*options, "--continue-on-collection-errors", *files], limit_s=limit_s
    )
    if not report.exists():
        raise NoVerdict(f"the tests without a fault did not end: {said[-_TAIL_CHARS:]}")
    cases = list(ElementTree.parse(report).iter("testcase"))  # noqa: S314  # pytest wrote it
    return {name: _verdict_of([case for case in cases if _is_in(case, name)]) for name in files}


def _verdict_of(cases: Sequence[ElementTree.Element]) -> Verdict:
    failed = [
        case.get("name", "")
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    seconds = sum(float(case.get("time", 0)) for case in cases)
    return Verdict(next(iter(failed if cases else ["no test has run"]), None), seconds)


def _is_in(case: ElementTree.Element, file: str) -> bool:
    """Tell by its module: a test that another module defines has that one's file."""
    module = file.removesuffix(".py").replace("/", ".")
    # What fails during collection has no class, but a module for its name.
    name = case.get("classname") or case.get("name", "")
    return f"{name}.".startswith(f"{module}.")


def _run_pytest(
    scratch: Scratch, arguments: Sequence[str], *, limit_s: float
) -> tuple[int | None, str]:
    """Return its exit code, None after the limit, and its output."""
    # A file, since a process that outlives pytest would keep a pipe open.
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
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(process)
        output.seek(0)
        return code, output.read()


def failed_test(code: int, output: str) -> str | None:
    """Return the test that failed, by pytest's exit code and output. Raises NoVerdict."""
    if code == _PASSED:
        return None
    if code not in _FAILURES:
        raise NoVerdict(f"pytest ended with {code}: {output[-_TAIL_CHARS:]}")
    failed = _FAILED.search(output)
    return "pytest, before the tests" if failed is None else failed.group(1)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End pytest and its children. The watchdog of the test services ends those."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
