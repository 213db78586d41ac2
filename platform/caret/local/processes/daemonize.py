"""`up --detach`: runs the supervisor in its own session and waits until it is ready.

The supervisor keeps the terminal until then, so the output is the same as without --detach. It
reports readiness with one byte through a pipe. If the pipe ends without that byte, the supervisor
has ended, and its exit code becomes ours.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

from caret.local.caret_services import manage
from caret.local.paths import EmbeddedPaths
from caret.local.processes.log_rotation import rotate_at_start

READY_OPTION = "--ready-descriptor"
_READY = b"1"


def run_detached() -> int:
    reading, writing = os.pipe()
    with subprocess.Popen(
        manage("up", READY_OPTION, str(writing)), pass_fds=[writing], start_new_session=True
    ) as supervisor:
        os.close(writing)
        _pass_on_stop_signals(supervisor)
        is_ready = os.read(reading, 1) == _READY
        os.close(reading)
        if is_ready:
            # Popen's exit would otherwise wait until the supervisor ends.
            supervisor.returncode = 0
            return 0
        return supervisor.wait()


def detach_from_terminal(paths: EmbeddedPaths, *, ready_descriptor: int) -> None:
    """Redirect output to the supervisor's log, then report readiness to the waiting process."""
    log_file = paths.logs / "supervisor.log"
    rotate_at_start(log_file)
    sys.stdout.flush()
    sys.stderr.flush()
    with log_file.open("ab") as log, Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    os.write(ready_descriptor, _READY)
    os.close(ready_descriptor)


def _pass_on_stop_signals(supervisor: subprocess.Popen[bytes]) -> None:
    """Forward signals to the supervisor: Ctrl-C does not reach its session."""

    def pass_on(number: int, _: FrameType | None) -> None:
        supervisor.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
