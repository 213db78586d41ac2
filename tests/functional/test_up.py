"""`manage.py up --detach` with a real engine: the installation that all tests of a run share."""

import os
import signal
import stat
from functools import partial

import pytest

from caret.local.processes.health_checks import is_responding
from tests.functional.conftest import Installation, still_running
from tests.stack.running import Stack
from tests.stack.services import Services
from tests.stack.waiting import wait_until

pytestmark = pytest.mark.engine


@pytest.fixture
def installation(stack: Stack, services: Services) -> Installation:
    return Installation(services.paths, stack.environment)


def test_up_starts_everything_and_reports_it(installation: Installation, stack: Stack) -> None:
    for part in ("Engine", "Migrations", "Tenants", "Gateway", "Console", "Worker"):
        assert f"ok  {part}" in stack.output
    assert installation.entry["console_url"] in stack.output
    assert installation.entry["tenants"][0]["api_key"] in stack.output


def test_up_streams_one_completion_with_its_latency(stack: Stack) -> None:
    assert "A completion of platform/examples/" in stack.output
    assert "first token" in stack.output
    assert "failed" not in stack.output


def test_the_up_file_is_private_and_lists_what_runs(installation: Installation) -> None:
    entry = installation.entry

    assert stat.S_IMODE(installation.paths.up_file.stat().st_mode) == 0o600
    assert {pool["tier"] for pool in entry["pools"]} == {"fast", "quality"}
    assert all(pool["pid"] in installation.pids for pool in entry["pools"])
    assert [tenant["slug"] for tenant in entry["tenants"]] == ["acme", "globex"]
    assert all(
        tenant["owner_email"]
        and tenant["owner_password"]
        and tenant["admin_email"]
        and tenant["admin_password"]
        and tenant["api_key"]
        for tenant in entry["tenants"]
    )
    assert entry["operator"] is not None
    assert entry["operator"]["url"] == f"{entry['console_url']}/operators/"
    assert entry["operator"]["handle"] == "operator"
    assert entry["operator"]["totp_uri"].startswith("otpauth://")


def test_gateway_console_and_engine_respond(installation: Installation) -> None:
    entry = installation.entry
    urls = [f"{entry[name]}/healthz" for name in ("gateway_url", "console_url")]
    for url in (*urls, f"{entry['pools'][0]['url']}/health"):
        # A response may take longer than the time limit of one check.
        wait_until(partial(is_responding, url), timeout_s=60)


def test_a_second_up_reports_the_running_installation(installation: Installation) -> None:
    before = installation.entry

    second_run = installation.manage("up")

    assert second_run.returncode == 0
    assert "runs already" in second_run.stdout
    assert before["console_url"] in second_run.stdout
    assert installation.entry == before


@pytest.mark.last  # it stops the installation that all tests share
def test_down_stops_everything(installation: Installation) -> None:
    process_tree = installation.process_tree
    assert len(process_tree) >= 10, "the engine's processes or the worker's pool are missing"

    down = installation.manage("down")

    assert down.returncode == 0
    assert "Caret has stopped" in down.stdout
    wait_until(lambda: not still_running(process_tree), timeout_s=60)
    assert not installation.paths.up_file.exists()


@pytest.mark.deep
@pytest.mark.last
def test_no_process_remains_after_the_supervisor_is_killed(installation: Installation) -> None:
    if not installation.pids:
        pytest.skip("the test of `down` has already stopped the installation")
    process_tree = installation.process_tree
    assert len(process_tree) >= 10, "the engine's processes or the worker's pool are missing"

    os.kill(installation.entry["supervisor_pid"], signal.SIGKILL)

    wait_until(lambda: not still_running(process_tree), timeout_s=60)
