"""Runs tests in the scratch copy, and says whether they fail."""

import os
import re
import signal
import subprocess
import sys
import tempfile
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
    options = ("-x", "-q", "--tb=short", "-p", "no:cacheprovider")
    started = time.monotonic()
    # A file, since a process that outlives pytest would keep a pipe open.
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *tests],
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
        said = output.read()
    seconds = time.monotonic() - started
    caught_by = f"the time limit of {limit_s:.0f} s" if code is None else failed_test(code, said)
    return Verdict(caught_by, seconds, said[-_TAIL_CHARS:])


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
