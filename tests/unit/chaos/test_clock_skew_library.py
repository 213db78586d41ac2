"""The library that changes a process's wall clock."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.clock_skew_library import make_clocks

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
HOST = "host-1"
# Reads the clock in each way that programs use, then again after the clock has jumped.
PROGRAM = """
import datetime, sys, time
for _ in range(2):
    sys.stdin.readline()
    print(time.time(), datetime.datetime.now().timestamp(), time.monotonic(), flush=True)
"""


@pytest.mark.parametrize("by_s", [3600.0, -3600.25])
def test_the_wall_clock_jumps_and_the_monotonic_clock_does_not(tmp_path: Path, by_s: float) -> None:
    clocks = make_clocks(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | clocks.environment_on(HOST),
        text=True,
    ) as process:
        before = _read_clocks(process)
        clocks.set_offset(HOST, by_s=by_s)
        after = _read_clocks(process)

    wall_s, date_s, monotonic_s = (now - then for now, then in zip(after, before, strict=True))
    assert wall_s - monotonic_s == pytest.approx(by_s, abs=0.1)
    assert date_s - monotonic_s == pytest.approx(by_s, abs=0.1)


def _read_clocks(process: subprocess.Popen[str]) -> list[float]:
    """Let PROGRAM read its clocks once; return the three times in seconds."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return [float(text) for text in process.stdout.readline().split()]
