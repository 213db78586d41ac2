"""One child process: starts it, waits until it is ready, stops it with a signal, then kills it.

Each child has its own session. So Ctrl-C in the terminal reaches only the supervisor, which decides
the order of shutdown. A command wrapped by `dying_with_parent` gets a signal from the kernel if the
supervisor dies. The watchdog handles grandchildren and machines without the program setpriv.
"""

import math
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from caret.local.errors import ServiceFailed
from caret.local.processes.log_rotation import read_tail, rotate_at_start

POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class ChildSpec:
    name: str  # as shown in the terminal; the log file is named after it
    command: tuple[str, ...]
    log_file: Path
    environment: Mapping[str, str] = field(repr=False)  # all variables; may contain secrets
    folder: Path = Path("/")  # working directory
    stop_signal: signal.Signals = signal.SIGTERM
    stop_grace_s: float = 5.0  # then SIGKILL to its process group
    is_waiting_for_input: bool = False  # its standard input is a pipe that `close_input` closes
    # Returns the reason of a failed start from the log of that start; None: the log has none.
    find_cause: Callable[[str], str | None] = lambda _: None


class ChildProcess:
    def __init__(self, spec: ChildSpec) -> None:
        self.spec = spec
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0  # byte of the log file at which the output of this child begins

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.spec.name} was not started"
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def exit_status(self) -> int | None:
        """Exit status; negative: the number of a signal. None: not started, or still running."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        rotate_at_start(self.spec.log_file)
        with self.spec.log_file.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                self.spec.command,
                stdin=subprocess.PIPE if self.spec.is_waiting_for_input else subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.spec.folder,
                env=dict(self.spec.environment),
                start_new_session=True,
            )

    def wait_ready(
        self,
        is_ready: Callable[[], bool],
        *,
        timeout_s: float,
        on_wait: Callable[[], None] = lambda: None,
    ) -> None:
        """Wait until the child is ready.

        Raises ServiceFailed if the child ends first, or after `timeout_s`.
        """
        deadline_s = time.monotonic() + timeout_s
        while not is_ready():
            if not self.is_alive:
                raise self._to_failure(f"ended while it started, with status {self.exit_status}")
            if time.monotonic() > deadline_s:
                raise self._to_failure(f"was not ready after {timeout_s:.0f} s")
            on_wait()
            time.sleep(POLL_S)

    def close_input(self) -> None:
        """Close the standard input that the child waits for."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()

    def request_stop(self) -> None:
        if self.is_alive:
            self._signal(self.spec.stop_signal)

    def stop(self, *, max_grace_s: float = math.inf) -> None:
        """Stop the child, wait for its end, and kill the rest of its process group.

        Wait at most `max_grace_s` seconds, even if the child's own `stop_grace_s` is longer.
        """
        self.request_stop()
        deadline_s = time.monotonic() + min(self.spec.stop_grace_s, max_grace_s)
        while self.is_alive and time.monotonic() < deadline_s:
            time.sleep(POLL_S)
        self.kill()

    def kill(self) -> None:
        """Send SIGKILL to the child and to the rest of its process group."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):  # the group is empty
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _read_log(self) -> str:
        with self.spec.log_file.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _to_failure(self, description: str) -> ServiceFailed:
        cause = self.spec.find_cause(self._read_log())
        if cause is not None:
            return ServiceFailed(
                f"{self.spec.name} {description}: {cause} Its log: {self.spec.log_file}"
            )
        return ServiceFailed(
            f"{self.spec.name} {description}. Its log: {self.spec.log_file}",
            log_tail=read_tail(self.spec.log_file),
        )


def dying_with_parent(
    command: tuple[str, ...], *, stop_signal: signal.Signals = signal.SIGKILL
) -> tuple[str, ...]:
    """Wrap `command`: the kernel sends it `stop_signal` when the thread that started it ends.

    Without the program setpriv, return `command` unchanged.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return command
    return (setpriv, "--pdeathsig", stop_signal.name.removeprefix("SIG"), *command)
