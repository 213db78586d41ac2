"""What `manage.py up` and `down` promise whatever the engine is; each test starts from a stop."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from caret.embedded.http_health import answers_ok
from caret.embedded.mark import environment_with, new_mark
from caret.embedded.ports import LOOPBACK
from tests.functional.conftest import Place, living
from tests.stack.waiting import wait_until


@pytest.fixture
def stopped(place_without_engine: Place) -> Iterator[Place]:
    yield place_without_engine
    place_without_engine.manage("down")


def test_with_an_own_engine_a_stop_leaves_nothing_and_the_next_start_finds_the_data(
    stopped: Place,
) -> None:
    first = stopped.manage("up", "--detach")
    assert first.returncode == 0, first.stdout + first.stderr
    # An engine of one's own is not started, and a sample that fails is no failure.
    assert "The engines are your own (CARET_POOLS)." in first.stdout
    assert stopped.entry["pools"][0]["pid"] is None
    assert not (stopped.paths.logs / "engine.log").exists()
    before, family = stopped.entry["tenants"], stopped.family

    down = stopped.manage("down")

    assert down.returncode == 0
    assert "Caret has stopped" in down.stdout
    assert not living(family)
    assert not stopped.paths.up_file.exists()
    assert stopped.manage("up", "--detach").returncode == 0
    assert stopped.entry["tenants"] == before


def test_ctrl_c_stops_everything(stopped: Place) -> None:
    with stopped.start("up") as supervisor:
        assert supervisor.stdout is not None
        for line in supervisor.stdout:
            if "Ctrl-C stops everything" in line:
                break
        supervisor.send_signal(signal.SIGINT)
        rest = supervisor.stdout.read()

    assert supervisor.returncode == 0
    assert "Stopped." in rest
    assert not stopped.pids


def test_ctrl_c_in_the_middle_of_the_start_leaves_nothing(stopped: Place) -> None:
    with stopped.start("up") as supervisor:
        assert supervisor.stdout is not None
        for line in supervisor.stdout:
            if "... Migrations" in line:
                break
        supervisor.send_signal(signal.SIGINT)
        supervisor.stdout.read()

    assert supervisor.returncode == 0
    assert not stopped.pids


def test_ctrl_c_while_it_detaches_leaves_nothing(stopped: Place) -> None:
    with stopped.start("up", "--detach") as waiting:
        assert waiting.stdout is not None
        for line in waiting.stdout:
            if "... Migrations" in line:
                break
        waiting.send_signal(signal.SIGINT)
        waiting.stdout.read()

    assert not stopped.pids


def test_a_port_in_use_is_named_before_anything_is_started(stopped: Place) -> None:
    port = stopped.environment["CARET_GATEWAY_PORT"]
    with socket.create_server((LOOPBACK, int(port))):
        refused = stopped.manage("up", "--detach")

    assert refused.returncode == 3
    assert re.search(rf"Port {port}.*CARET_GATEWAY_PORT", refused.stderr)
    assert "Traceback" not in refused.stderr
    assert not stopped.pids


def test_a_wrong_setting_is_one_sentence(stopped: Place) -> None:
    stopped.environment["CARET_ENGINE_PORT"], right = (
        "http",
        stopped.environment["CARET_ENGINE_PORT"],
    )
    refused = stopped.manage("up")
    stopped.environment["CARET_ENGINE_PORT"] = right

    assert refused.returncode == 2
    assert refused.stderr.startswith("caret: CARET_ENGINE_PORT")
    assert len(refused.stderr.splitlines()) == 1


def test_a_part_that_does_not_start_is_named_with_its_last_words(
    stopped: Place, tmp_path: Path
) -> None:
    catalogue = tmp_path / "pools.toml"
    catalogue.write_text(
        '[[pools]]\nname = "a"\ntier = "no such tier"\nmodel = "m"\ntokenizer = "/none"\n'
        'max_context_tokens = 1\nreplicas = ["http://127.0.0.1:1"]\n'
    )
    stopped.environment["CARET_POOLS"], right = str(catalogue), stopped.environment["CARET_POOLS"]
    refused = stopped.manage("up", "--detach")
    stopped.environment["CARET_POOLS"] = right

    assert refused.returncode == 7
    assert "Gateway ended at its start" in refused.stderr
    assert str(stopped.paths.logs / "gateway.log") in refused.stderr
    assert not stopped.pids


def test_a_killed_part_is_started_again(stopped: Place) -> None:
    assert stopped.manage("up", "--detach").returncode == 0
    url = stopped.entry["gateway_url"] + "/healthz"
    (gateway,) = [pid for pid in stopped.pids if _arguments(pid)[-1:] == ["gateway"]]

    os.kill(gateway, signal.SIGKILL)
    wait_until(lambda: gateway not in stopped.pids, timeout_s=5)

    wait_until(lambda: answers_ok(url), timeout_s=30)


def test_a_run_without_supervisor_and_watchdog_is_cleared_by_the_next(stopped: Place) -> None:
    assert stopped.manage("up", "--detach").returncode == 0
    supervisor = stopped.entry["supervisor_pid"]
    watchdogs = [
        pid for pid in _children(supervisor) if "caret.embedded.watchdog" in _arguments(pid)
    ]
    mark = environment_with(new_mark(stopped.paths.home))
    with subprocess.Popen(["sleep", "600"], env=mark) as leftover:
        for pid in (*watchdogs, supervisor):
            os.kill(pid, signal.SIGKILL)

        again = stopped.manage("up", "--detach")

        assert leftover.wait(timeout=5) == -signal.SIGTERM
    assert again.returncode == 0, again.stdout + again.stderr
    assert "that an earlier run had left behind" in again.stdout
    assert stopped.entry["supervisor_pid"] != supervisor


def test_down_without_anything_running_says_so(stopped: Place) -> None:
    down = stopped.manage("down")

    assert down.returncode == 0
    assert down.stdout == "Caret was not running.\n"


def _arguments(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")


def _children(pid: int) -> list[int]:
    return [
        int(number)
        for file in Path(f"/proc/{pid}/task").glob("*/children")
        for number in file.read_text().split()
    ]
