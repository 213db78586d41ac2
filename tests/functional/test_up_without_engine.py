"""`manage.py up` and `down` with the operator's own pools file, so that `up` starts no engine.

Starting takes most of the time. So tests that need a running installation share it.
"""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Timer

import pytest

from caret.local.ports import LOOPBACK
from caret.local.processes.health_checks import is_responding
from caret.local.processes.process_tag import new_tag, tag_environment
from tests.functional.conftest import Installation
from tests.stack.commands import UP_TIMEOUT_S
from tests.stack.waiting import wait_until


@pytest.fixture
def stopped_installation(installation_without_engine: Installation) -> Iterator[Installation]:
    """Return the installation, stopped. Stop it again after the test."""
    _stop(installation_without_engine)
    yield installation_without_engine
    _stop(installation_without_engine)


@pytest.fixture
def running_installation(installation_without_engine: Installation) -> Installation:
    if not installation_without_engine.pids:
        installation_without_engine.manage("up", "--detach")
    return installation_without_engine


def _stop(installation: Installation) -> None:
    if installation.pids:
        installation.manage("down")


@pytest.mark.deep  # long, as the other tests that start Caret
def test_no_engine_is_started_if_the_operator_names_a_pools_file(
    stopped_installation: Installation,
) -> None:
    installation = stopped_installation

    up_process = installation.manage("up", "--detach")

    # `up` succeeds although its test completion fails.
    assert up_process.returncode == 0, up_process.stdout + up_process.stderr
    for part in ("Postgres", "Valkey", "Migrations", "Tenants", "Gateway", "Console", "Worker"):
        assert f"ok  {part}" in up_process.stdout
    assert "The engines are your own (CARET_POOLS_FILE)." in up_process.stdout
    assert installation.entry["pools"][0]["pid"] is None
    assert not (installation.paths.logs / "engine.log").exists()


@pytest.mark.deep
def test_a_killed_gateway_is_restarted(running_installation: Installation) -> None:
    installation = running_installation
    url = installation.entry["gateway_url"] + "/healthz"
    (gateway,) = [pid for pid in installation.pids if _arguments(pid)[-1] == "gateway"]

    os.kill(gateway, signal.SIGKILL)
    wait_until(lambda: gateway not in installation.pids, timeout_s=60)

    wait_until(lambda: is_responding(url), timeout_s=120)


@pytest.mark.deep
def test_data_is_kept_for_the_next_start(running_installation: Installation) -> None:
    tenants_before = running_installation.entry["tenants"]

    running_installation.manage("down")

    assert running_installation.manage("up", "--detach").returncode == 0
    assert running_installation.entry["tenants"] == tenants_before


@pytest.mark.deep
def test_up_cleans_up_after_a_killed_supervisor_and_stops_on_ctrl_c(
    running_installation: Installation,
) -> None:
    installation = running_installation
    supervisor = installation.entry["supervisor_pid"]
    watchdogs = [
        pid for pid in _children(supervisor) if "caret.local.processes.watchdog" in _arguments(pid)
    ]
    assert watchdogs, "the supervisor's watchdog was not found"
    # An earlier run may leave a process behind, which has the installation's tag. Imitate one.
    tag_variables = tag_environment(new_tag(installation.paths.home))
    with subprocess.Popen(["sleep", "600"], env=tag_variables) as leftover:
        for pid in (*watchdogs, supervisor):
            os.kill(pid, signal.SIGKILL)

        with installation.start("up") as second_run:
            output = _read_until(second_run, "Ctrl-C stops everything")
            exit_status = leftover.wait(timeout=60)
            new_supervisor = installation.entry["supervisor_pid"]
            second_run.send_signal(signal.SIGINT)
            remaining_output = _read_rest(second_run)

    assert exit_status == -signal.SIGTERM
    assert "that an earlier run had left behind" in output
    assert new_supervisor != supervisor
    assert second_run.returncode == 0
    assert "Stopped." in remaining_output
    assert not installation.pids


def test_ctrl_c_before_any_service_has_started_prints_no_traceback(
    stopped_installation: Installation,
) -> None:
    # `up` waits for a process of an earlier run, which ignores SIGTERM.
    script = "trap 'echo got SIGTERM' TERM; echo ready; while true; do sleep 0.1; done"
    tag_variables = tag_environment(new_tag(stopped_installation.paths.home))
    with subprocess.Popen(
        ["sh", "-c", script], stdout=subprocess.PIPE, text=True, env=os.environ | tag_variables
    ) as leftover:
        _read_until(leftover, "ready")
        with stopped_installation.start("up") as supervisor:
            _read_until(leftover, "got SIGTERM")
            supervisor.send_signal(signal.SIGINT)
            output = _read_rest(supervisor)
        leftover.kill()

    assert supervisor.returncode == 0
    assert "Stopped." in output
    assert "Traceback" not in output


def test_ctrl_c_during_the_start_leaves_no_process(stopped_installation: Installation) -> None:
    with stopped_installation.start("up") as supervisor:
        _read_until(supervisor, "... Migrations")
        supervisor.send_signal(signal.SIGINT)
        _read_rest(supervisor)

    assert supervisor.returncode == 0
    assert not stopped_installation.pids


def test_ctrl_c_while_detaching_leaves_no_process(stopped_installation: Installation) -> None:
    with stopped_installation.start("up", "--detach") as waiting:
        _read_until(waiting, "... Migrations")
        waiting.send_signal(signal.SIGINT)
        _read_rest(waiting)

    assert not stopped_installation.pids


def test_a_port_in_use_is_reported_before_the_start(stopped_installation: Installation) -> None:
    port = stopped_installation.environment["CARET_GATEWAY_PORT"]
    with socket.create_server((LOOPBACK, int(port))):
        process = stopped_installation.manage("up", "--detach")

    assert process.returncode == 3  # ExitCode.PORT_IN_USE
    assert re.search(rf"Port {port}.*CARET_GATEWAY_PORT", process.stderr)
    assert "Traceback" not in process.stderr
    assert not stopped_installation.pids


def test_an_invalid_setting_is_reported_in_one_sentence(stopped_installation: Installation) -> None:
    process = _with_setting(stopped_installation, "CARET_ENGINE_PORT", "http").manage("up")

    assert process.returncode == 2  # ExitCode.BAD_SETTING
    assert process.stderr.startswith("caret: CARET_ENGINE_PORT")
    assert len(process.stderr.splitlines()) == 1


@pytest.mark.deep  # long
def test_a_part_that_does_not_start_is_reported_with_its_log(
    stopped_installation: Installation, tmp_path: Path
) -> None:
    broken_file = tmp_path / "pools.toml"
    broken_file.write_text(
        '[[pools]]\nname = "a"\ntier = "no such tier"\nmodel = "m"\ntokenizer = "/none"\n'
        'max_context_tokens = 1\nreplicas = ["http://127.0.0.1:1"]\n'
    )
    misconfigured = _with_setting(stopped_installation, "CARET_POOLS_FILE", str(broken_file))

    process = misconfigured.manage("up", "--detach")

    assert process.returncode == 7  # ExitCode.SERVICE_FAILED
    assert "Gateway ended while it started" in process.stderr
    assert str(stopped_installation.paths.logs / "gateway.log") in process.stderr
    assert not stopped_installation.pids


def test_down_reports_that_nothing_was_running(stopped_installation: Installation) -> None:
    down = stopped_installation.manage("down")

    assert down.returncode == 0
    assert down.stdout == "Caret was not running.\n"


def _with_setting(installation: Installation, name: str, value: str) -> Installation:
    """Return the same installation with another value of one setting."""
    return replace(installation, environment=installation.environment | {name: value})


def _read_until(process: subprocess.Popen[str], text: str) -> str:
    """Return the output up to the line with `text`.

    Fail if the process ends without such a line. Kill it if it hangs.
    """
    assert process.stdout is not None
    lines: list[str] = []
    kill_timer = Timer(UP_TIMEOUT_S, process.kill)
    kill_timer.start()
    try:
        for line in process.stdout:
            lines.append(line)
            if text in line:
                return "".join(lines)
    finally:
        kill_timer.cancel()
    raise AssertionError(f"the process ended without {text!r}: {''.join(lines)}")


def _read_rest(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.read()


def _arguments(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")
    except OSError:  # it has just ended, such as a process of Postgres for one connection
        return [""]


def _children(pid: int) -> list[int]:
    return [
        int(number)
        for file in Path(f"/proc/{pid}/task").glob("*/children")
        for number in file.read_text().split()
    ]
