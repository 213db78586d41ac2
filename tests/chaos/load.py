"""The clients of a run: their tenants, and the process that sends their requests."""

import math
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import msgspec

from caret.local.paths import REPOSITORY
from caret.local.processes.child_process import dying_with_parent
from tests.chaos.clients import Load, TenantLoad
from tests.chaos.companies import new_chaos_company
from tests.chaos.environment import World

# Requests a second of a busy company, far below its rate limit: the default policy allows 20 a
# second for each user, so 100 for the five users of the company.
_MAX_COMPANY_RATE: Final = 40.0
_QUIET_SHARE: Final = 0.1  # of all requests
MIN_QUIET_RATE: Final = 2.0  # requests a second
# Longer than MAX_REQUEST_S of tests/chaos/clients.py, for which the process itself waits.
_SETTLE_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class ClientsProcess:
    """A process of clients. It writes a file of notes, which the world's notebook reads."""

    tenant: str  # the first tenant's ID
    process: subprocess.Popen[bytes]

    def stop(self) -> None:
        """Stop once all requests in flight have ended."""
        self.process.terminate()
        self.process.wait(timeout=_SETTLE_S)


@contextmanager
def clients(world: World, *, rate: float) -> Iterator[ClientsProcess]:
    """Run clients of a quiet tenant and of busy tenants, which send the rest of `rate`.

    `rate` is in requests a second. It must be above MIN_QUIET_RATE, so that some requests are left
    for the busy tenants. The process's `tenant` is the quiet one.
    """
    quiet_rate = max(MIN_QUIET_RATE, rate * _QUIET_SHARE)
    num_busy = math.ceil((rate - quiet_rate) / _MAX_COMPANY_RATE)
    quiet = new_chaos_company("quiet", rate=quiet_rate)
    busy_rate = (rate - quiet_rate) / num_busy
    companies = (quiet, *(new_chaos_company(f"busy-{n}", rate=busy_rate) for n in range(num_busy)))
    with running_clients(world, [company.load for company in companies]) as clients_process:
        yield clients_process


@contextmanager
def running_clients(world: World, tenant_loads: Sequence[TenantLoad]) -> Iterator[ClientsProcess]:
    """Run the clients of these tenants in one process.

    The end of the block kills the process. Call `stop` before, so that no request is interrupted.
    """
    notes = world.home.paths.home / f"notes-{time.time_ns()}.jsonl"
    load = Load(world.gateway_urls(), tuple(tenant_loads), str(notes))
    log = (world.home.paths.logs / "clients.log").open("ab")
    command = (sys.executable, "-m", "tests.chaos.clients", msgspec.json.encode(load).decode())
    # The process starts in the network of the host `clients`, so that network faults affect it.
    with log, world.hosts["clients"].entered():
        process = subprocess.Popen(
            dying_with_parent(command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=world.home.environment,
            cwd=REPOSITORY,
        )
    world.notebook.follow(notes)
    try:
        yield ClientsProcess(tenant_loads[0].tenant, process)
    finally:
        process.kill()
        process.wait()
