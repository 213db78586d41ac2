"""No child process outlives the supervisor, however the supervisor ends.

All descendants of a supervisor have its tag in their environment. A watchdog ends them as soon as
the supervisor has ended. A home is the folder of an installation (CARET_HOME).
"""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from caret.local.errors import ServiceFailed
from caret.local.processes.child_process import ChildProcess, ChildSpec, dying_with_parent
from caret.local.processes.process_tag import (
    find_tagged_pids,
    home_digest,
    new_tag,
    tag_environment,
    terminate_tagged,
)
from caret.local.processes.watchdog import Watchdog
from tests.stack.waiting import wait_until

# A supervisor with one child, a shell, which starts two `sleep` processes. One of the two runs in a
# session of its own. All three ignore SIGTERM.
_SUPERVISOR = """
    import os, sys, time
    from pathlib import Path
    from caret.local.processes.process_tag import tag_environment
    from caret.local.processes.child_process import ChildProcess, ChildSpec, dying_with_parent
    from caret.local.processes.watchdog import Watchdog

    tag, log_file, is_guarded = sys.argv[1], Path(sys.argv[2]), sys.argv[3] == "guarded"
    if is_guarded:
        Watchdog(tag, grace_s=0.5).__enter__()
    spec = ChildSpec(
        name="Child",
        command=dying_with_parent(("sh", "-c", "trap '' TERM; setsid sleep 600 & sleep 600")),
        log_file=log_file,
        environment=dict(os.environ) | tag_environment(tag),
    )
    child = ChildProcess(spec)
    child.start()
    print("started", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def supervisor_tag(tmp_path: Path) -> Iterator[str]:
    supervisor_tag = new_tag(tmp_path)
    yield supervisor_tag
    terminate_tagged(supervisor_tag, grace_s=0.0)


def _start_supervisor(
    supervisor_tag: str, tmp_path: Path, *, is_guarded: bool
) -> subprocess.Popen[str]:
    supervisor = subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent(_SUPERVISOR),
            supervisor_tag,
            str(tmp_path / "log"),
            "guarded" if is_guarded else "unguarded",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert supervisor.stdout is not None
    assert supervisor.stdout.readline() == "started\n"
    # The shell and its two `sleep` processes.
    wait_until(lambda: len(find_tagged_pids(supervisor_tag)) >= 3, timeout_s=60)
    return supervisor


def test_all_processes_end_if_the_supervisor_is_killed(supervisor_tag: str, tmp_path: Path) -> None:
    with _start_supervisor(supervisor_tag, tmp_path, is_guarded=True) as supervisor:
        supervisor.kill()

    wait_until(lambda: not find_tagged_pids(supervisor_tag), timeout_s=60)


def test_without_a_watchdog_grandchildren_survive(supervisor_tag: str, tmp_path: Path) -> None:
    """The kernel ends only direct children; the watchdog is needed for grandchildren."""
    with _start_supervisor(supervisor_tag, tmp_path, is_guarded=False) as supervisor:
        supervisor.kill()

    # The kernel ends the shell. Its two `sleep` processes survive.
    wait_until(lambda: len(find_tagged_pids(supervisor_tag)) < 3, timeout_s=60)
    assert find_tagged_pids(supervisor_tag)


def test_an_orderly_stop_leaves_no_grandchildren(supervisor_tag: str, tmp_path: Path) -> None:
    with Watchdog(supervisor_tag, grace_s=0.5):
        child = ChildProcess(
            ChildSpec(
                name="Child",
                command=dying_with_parent(("sh", "-c", "setsid sleep 600 & sleep 600")),
                log_file=tmp_path / "log",
                environment=dict(os.environ) | tag_environment(supervisor_tag),
            )
        )
        child.start()
        # The shell and its two `sleep` processes.
        wait_until(lambda: len(find_tagged_pids(supervisor_tag)) >= 3, timeout_s=60)
        child.stop()
        assert find_tagged_pids(supervisor_tag)

    assert not find_tagged_pids(supervisor_tag)


def test_a_killed_watchdog_is_restarted(supervisor_tag: str) -> None:
    with Watchdog(supervisor_tag) as watchdog:
        killed_pid = watchdog.pid
        os.kill(killed_pid, signal.SIGKILL)
        wait_until(lambda: _read_state(killed_pid) == "Z", timeout_s=60)
        watchdog.ensure_running()

        assert watchdog.pid != killed_pid


def test_a_watchdog_ignores_the_signals_of_a_terminal(supervisor_tag: str) -> None:
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    with Watchdog(supervisor_tag) as watchdog:
        wait_until(lambda: _ignores_signals(watchdog.pid, signals), timeout_s=60)
        for number in signals:
            os.kill(watchdog.pid, number)

        assert _wait_for_rest(watchdog.pid) == "S"  # sleeping; a dead process would be a zombie


def test_a_child_that_ignores_its_signal_is_killed_after_the_grace_period(tmp_path: Path) -> None:
    log = tmp_path / "log"
    child = ChildProcess(
        ChildSpec(
            name="Stubborn",
            command=("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"),
            log_file=log,
            environment=dict(os.environ),
            stop_grace_s=0.3,
        )
    )
    child.start()
    wait_until(lambda: "ready" in log.read_text(), timeout_s=60)

    child.stop()

    assert child.exit_status == -signal.SIGKILL


def test_a_failed_start_names_the_cause_from_the_log_of_this_start(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("Error: an earlier start\n")
    child = ChildProcess(
        ChildSpec(
            name="Engine",
            command=("sh", "-c", "echo 'Error: no room'; exit 3"),
            log_file=log,
            environment=dict(os.environ),
            find_cause=lambda text: f"{text.splitlines()[0]}.",
        )
    )
    child.start()

    with pytest.raises(ServiceFailed) as exc_info:
        child.wait_ready(lambda: False, timeout_s=60)

    assert str(exc_info.value) == (
        f"Engine ended while it started, with status 3: Error: no room. Its log: {log}"
    )
    assert exc_info.value.log_tail == ""  # the message contains the cause


def _read_state(pid: int) -> str:
    """Return the letter of the state in /proc: S for a sleeping process, Z for a dead one."""
    return _read_status(pid)["State"][0]


def _wait_for_rest(pid: int) -> str:
    """Wait until the process sleeps or is dead, and return the letter of this state."""
    states: list[str] = []

    def is_at_rest() -> bool:
        states.append(_read_state(pid))
        return states[-1] in "SZ"

    wait_until(is_at_rest, timeout_s=60)
    return states[-1]


def _ignores_signals(pid: int, signals: Sequence[signal.Signals]) -> bool:
    """Return whether the process ignores all these signals."""
    mask = int(_read_status(pid)["SigIgn"], 16)  # the lowest bit is signal 1
    return all(mask & (1 << (number - 1)) for number in signals)


def _read_status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_leftover_processes_of_a_home_are_terminated(tmp_path: Path) -> None:
    tag = new_tag(tmp_path)
    pipe = subprocess.PIPE
    with subprocess.Popen("cat", env=tag_environment(tag), stdin=pipe, stdout=pipe) as leftover:
        _await_echo(leftover)
        # Every tag of a home begins with the home's digest.
        num_ended = terminate_tagged(home_digest(tmp_path), grace_s=60.0)

        assert num_ended == 1
        assert leftover.wait(timeout=60) == -signal.SIGTERM


def _await_echo(cat: subprocess.Popen[bytes]) -> None:
    """Wait until the program is loaded. Before, /proc shows no environment, and so no tag."""
    assert cat.stdin is not None
    assert cat.stdout is not None
    cat.stdin.write(b"\n")
    cat.stdin.flush()
    assert cat.stdout.read(1) == b"\n"


def test_processes_of_another_home_are_not_terminated(tmp_path: Path) -> None:
    tag = new_tag(tmp_path / "neighbour")
    with subprocess.Popen(["sleep", "600"], env=tag_environment(tag)) as foreign_process:
        terminate_tagged(home_digest(tmp_path / "mine"), grace_s=0.0)

        assert foreign_process.poll() is None
        foreign_process.kill()
