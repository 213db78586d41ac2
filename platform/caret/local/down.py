"""`manage.py down`: stops the installation that `manage.py up` has started in this CARET_HOME."""

import os
import signal
import sys
import time
from pathlib import Path

from caret.local.errors import ExitCode, StartupError
from caret.local.paths import EmbeddedPaths, home_from_environment
from caret.local.processes.pid_lock import read_supervisor_pid
from caret.local.processes.process_tag import home_digest, terminate_tagged

# Longer than all services together take to stop. Postgres takes longest, up to 20 s.
_TIMEOUT_S = 60.0
_LEFTOVER_GRACE_S = 5.0
_POLL_S = 0.05


def main(arguments: list[str]) -> int:
    """Stop the supervisor, or the processes that a killed supervisor left behind.

    Raises StartupError if the supervisor does not end.
    """
    if arguments:
        raise StartupError(
            "`down` takes no arguments; set CARET_HOME to choose another installation."
        )
    paths = home_from_environment()
    pid = read_supervisor_pid(paths)
    if pid is None:
        _print_line(_terminate_leftovers(paths))
    else:
        _stop_supervisor(pid, paths)
    return ExitCode.OK


def _stop_supervisor(pid: int, paths: EmbeddedPaths) -> None:
    began_s = time.monotonic()
    os.kill(pid, signal.SIGTERM)
    while read_supervisor_pid(paths) is not None or _is_running(pid):
        if time.monotonic() - began_s > _TIMEOUT_S:
            raise StartupError(
                f"The supervisor (process {pid}) has not ended after {_TIMEOUT_S:.0f} s. Wait, or"
                " end the process."
            )
        time.sleep(_POLL_S)
    _print_line(f"Caret has stopped, after {time.monotonic() - began_s:.1f} s.")


def _is_running(pid: int) -> bool:
    """Return whether the process still runs. It ends a moment after it has released its lock."""
    try:
        # The state follows the program's name, which is in parentheses and may contain any text.
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"  # a zombie: it has ended, and its parent has not noticed yet


def _terminate_leftovers(paths: EmbeddedPaths) -> str:
    """Terminate the processes that remain if the supervisor and its watchdog were killed.

    Return a sentence for the terminal.
    """
    num_ended = terminate_tagged(home_digest(paths.home), grace_s=_LEFTOVER_GRACE_S)
    paths.up_file.unlink(missing_ok=True)
    if num_ended:
        return f"Caret was not running. Processes of an earlier run, now stopped: {num_ended}."
    return "Caret was not running."


def _print_line(text: str) -> None:
    sys.stdout.write(text + "\n")
