"""Runs tests in the scratch copy, and says whether they fail."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.faults.scratch import Scratch

_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)
_PASSED: Final = 0
_FAILURES: Final = (1, 2)  # failed tests; interrupted by an error during collection
_TAIL_CHARS: Final = 2_000


class NoVerdict(Exception):
    """pytest itself failed, so the tests say nothing."""


@dataclass(frozen=True, slots=True)
class Verdict:
    caught_by: str | None  # the first test that failed; None: all passed
    seconds: float
    output: str  # its end


def try_tests(scratch: Scratch, tests: Sequence[str], *, limit_s: float) -> Verdict:
    """Run `tests` until one fails. Tests that take longer than `limit_s` fail. Raises NoVerdict."""
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-x", "-q", "--tb=short", "-p", "no:cacheprovider", *tests],
        cwd=scratch.root,
        env=scratch.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        return Verdict(f"the time limit of {limit_s:.0f} s", limit_s, _end(process))
    finally:
        _end(process)
    seconds = time.monotonic() - started
    return Verdict(_failed_test(process.returncode, output), seconds, output[-_TAIL_CHARS:])


def _failed_test(code: int, output: str) -> str | None:
    if code == _PASSED:
        return None
    if code not in _FAILURES:
        raise NoVerdict(f"pytest ended with {code}: {output[-_TAIL_CHARS:]}")
    failed = _FAILED.search(output)
    return "pytest, before the tests" if failed is None else failed.group(1)


def _end(process: subprocess.Popen[str]) -> str:
    """End pytest and its children. The watchdog of the test services ends those."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()[0] or ""
