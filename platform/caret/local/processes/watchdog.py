"""Ends all processes with a supervisor's tag as soon as the supervisor has ended.

The watchdog is a process that reads from a pipe whose writing end only the supervisor has. When the
supervisor ends, even by SIGKILL, the kernel closes the writing end, and the watchdog wakes up. It
runs as `python -m caret.local.processes.watchdog TAG GRACE_S`, in its own session, so that neither
Ctrl-C nor a closed terminal reaches it. Its own environment has no tag.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

from caret.local.processes.process_tag import terminate_tagged

# Time between SIGTERM and SIGKILL: enough for Postgres and Valkey to write their data, and short
# enough for users who wait.
GRACE_S = 3.0
_FINISH_TIMEOUT_S = GRACE_S + 30.0  # only if the machine is busy: the watchdog exits by itself


class Watchdog:
    """The supervisor's end of the pipe; leaving the `with` block ends all tagged processes."""

    def __init__(self, tag: str, *, grace_s: float = GRACE_S) -> None:
        self._tag = tag
        self._grace_s = grace_s
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.ensure_running()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=_FINISH_TIMEOUT_S)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def ensure_running(self) -> None:
        """Start the watchdog, or restart it if it was killed."""
        if self._process is not None:
            if self._process.poll() is None:
                return
            assert self._process.stdin is not None
            self._process.stdin.close()
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "caret.local.processes.watchdog",
                self._tag,
                str(self._grace_s),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            env=_build_environment(),
        )


def _build_environment() -> dict[str, str]:
    """Return the minimum that Python needs, without the supervisor's secrets."""
    source_root = Path(__file__).resolve().parents[3]  # `platform`, which contains this package
    return {"PYTHONPATH": str(source_root), "PATH": os.environ.get("PATH", os.defpath)}


def main(argv: list[str]) -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _, tag, grace_s = argv
    while sys.stdin.buffer.read(1):
        pass  # nothing is written; wait for the end of the input
    terminate_tagged(tag, grace_s=float(grace_s))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
