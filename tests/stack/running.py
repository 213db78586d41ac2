"""All of Caret as real processes under its real supervisor, started once in a test session.

It shares Postgres and Valkey with the `services` fixture, so a test can compare an HTTP response
with the rows in the database.
"""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from caret.local.state_file import RunningInstallation, StatePoolEntry, TenantEntry, read_up_file
from tests.stack.commands import UP_TIMEOUT_S, environment_for, manage
from tests.stack.ports import free_ports
from tests.stack.services import Services


@dataclass(frozen=True, slots=True)
class Tenant:
    slug: str
    admin_email: str
    admin_password: str
    developer_email: str
    developer_password: str
    api_key: str


@dataclass(frozen=True, slots=True)
class Stack:
    console_url: str
    gateway_url: str
    tenants: tuple[Tenant, ...]  # acme, globex
    logs: Path  # one file for each process
    up_file: Path
    environment: dict[str, str]  # for `manage.py` commands against this stack; holds secrets
    output: str  # the output of `up`

    @property
    def pools(self) -> list[StatePoolEntry]:
        """Read the current entries: an engine that was restarted has a new process ID."""
        return _read_up_file(self.up_file)["pools"]

    def tenant(self, slug: str) -> Tenant:
        return next(tenant for tenant in self.tenants if tenant.slug == slug)


@dataclass(frozen=True, slots=True)
class Engine:
    stack: Stack

    @property
    def url(self) -> str:
        return self.stack.pools[0]["url"]

    @property
    def pid(self) -> int:
        pid = self.stack.pools[0]["pid"]
        assert pid is not None
        return pid


@pytest.fixture(scope="session")
def stack(services: Services) -> Iterator[Stack]:
    environment = environment_for(services.paths.home, ports=free_ports(3)) | {
        "DATABASE_URL": services.database_url,
        "CARET_OWNER_DATABASE_URL": services.owner_database_url,
        "REDIS_URL": services.redis_url,
        # So that the supervisor also ends when this session is killed.
        **services.process_mark,
    }
    has_started = False
    try:
        output = _start(environment)
        has_started = True
        yield _describe(services, environment=environment, output=output)
    finally:
        stopped = manage("down", environment=environment)
        # If `up` has failed, a failure of `down` must not replace that failure.
        assert not has_started or stopped.returncode == 0, stopped.stdout + stopped.stderr


def _start(environment: dict[str, str]) -> str:
    """Run `up` and return its output.

    If the stack does not start, pytest prints the failure for every test that needs the stack. So
    the failure is a single sentence.
    """
    try:
        started = manage("up", "--detach", environment=environment)
    except subprocess.TimeoutExpired:
        pytest.fail(f"`manage.py up` did not end within {UP_TIMEOUT_S:.0f} s.", pytrace=False)
    if started.returncode != 0:
        lines = (started.stdout + started.stderr).strip().splitlines()
        reason = lines[-1] if lines else "no output"
        pytest.fail(f"`manage.py up` ended with {started.returncode}: {reason}", pytrace=False)
    return started.stdout


@pytest.fixture(scope="session")
def engine(stack: Stack) -> Engine:
    """The real vLLM with the demonstration model."""
    return Engine(stack)


def _describe(services: Services, *, environment: dict[str, str], output: str) -> Stack:
    entry = _read_up_file(services.paths.up_file)
    return Stack(
        console_url=entry["console_url"],
        gateway_url=entry["gateway_url"],
        tenants=tuple(_tenant(tenant) for tenant in entry["tenants"]),
        logs=services.paths.logs,
        up_file=services.paths.up_file,
        environment=environment,
        output=output,
    )


def _tenant(entry: TenantEntry) -> Tenant:
    return Tenant(
        slug=entry["slug"],
        admin_email=entry["admin_email"],
        admin_password=entry["admin_password"],
        developer_email=entry["developer_email"],
        developer_password=entry["developer_password"],
        api_key=entry["api_key"],
    )


def _read_up_file(up_file: Path) -> RunningInstallation:
    entry = read_up_file(up_file)
    assert entry is not None, "the supervisor is not running"
    return entry
