"""`manage.py up --detach` with everything in it, as a stranger runs it. The tests share one run and
stand in the order of a day: it starts, it is looked at, it is killed."""

import os
import signal
import stat
import subprocess

import pytest

from caret.embedded.http_health import answers_ok
from tests.functional.conftest import Place, living
from tests.stack.waiting import wait_until

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def started(place: Place) -> subprocess.CompletedProcess[str]:
    return place.manage("up", "--detach")


def test_it_starts_everything_and_says_so(
    place: Place, started: subprocess.CompletedProcess[str]
) -> None:
    assert started.returncode == 0, started.stdout + started.stderr
    for part in ("Postgres", "Valkey", "Migrations", "Tenants", "Gateway", "Console", "Worker"):
        assert f"ok  {part}" in started.stdout
    assert place.entry["console_url"] in started.stdout
    assert place.entry["tenants"][0]["api_key"] in started.stdout


def test_it_streams_one_completion_with_its_numbers(
    started: subprocess.CompletedProcess[str],
) -> None:
    assert "A completion of platform/examples/" in started.stdout
    assert "first token" in started.stdout
    assert "failed" not in started.stdout


@pytest.mark.usefixtures("started")
def test_the_up_file_is_private_and_says_what_runs(place: Place) -> None:
    entry = place.entry

    assert stat.S_IMODE(place.paths.up_file.stat().st_mode) == 0o600
    assert {pool["tier"] for pool in entry["pools"]} == {"fast", "quality"}
    assert all(pool["pid"] in place.pids for pool in entry["pools"])
    assert [tenant["slug"] for tenant in entry["tenants"]] == ["acme", "globex"]
    assert all(
        tenant["admin_email"] and tenant["admin_password"] and tenant["api_key"]
        for tenant in entry["tenants"]
    )


@pytest.mark.usefixtures("started")
def test_gateway_console_and_engine_answer(place: Place) -> None:
    assert answers_ok(place.entry["gateway_url"] + "/healthz")
    assert answers_ok(place.entry["console_url"] + "/healthz")
    assert answers_ok(place.entry["pools"][0]["url"] + "/health")


@pytest.mark.usefixtures("started")
def test_a_second_up_says_that_it_runs_already(place: Place) -> None:
    before = place.entry

    again = place.manage("up")

    assert again.returncode == 0
    assert "runs already" in again.stdout
    assert before["console_url"] in again.stdout
    assert place.entry == before


@pytest.mark.usefixtures("started")
def test_nothing_is_left_when_the_supervisor_is_killed(place: Place) -> None:
    family = place.family
    assert len(family) > 15, "engine core, pool and backends are among them"

    os.kill(place.entry["supervisor_pid"], signal.SIGKILL)

    wait_until(lambda: not living(family), timeout_s=10)
