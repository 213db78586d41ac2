"""Stores that come back with less data, or on another host."""

import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg

from tests.chaos.environment import World
from tests.chaos.scenario import Fault, Scenario
from tests.chaos.stores import connect_as_superuser, copy_to_standby, standby_on

_SYNCHRONOUS_S = 30.0  # until the standby must be synchronous
_NOT_INGESTED_S = 3.0  # usage records of this time are lost with Valkey


@dataclass(slots=True)
class ValkeyDataLoss(Fault):
    """Valkey is killed, and started again with an empty folder.

    In the seconds before, beat is stopped, so nothing is ingested, and Valkey loses usage records
    that are not in Postgres yet. The gateways must send the records again from their journals.
    """

    def begin(self, world: World) -> None:
        valkey, beat = world.parts["valkey"], world.parts["beat"]
        beat.signal(signal.SIGSTOP)
        time.sleep(_NOT_INGESTED_S)
        valkey.kill()
        shutil.rmtree(world.disks.valkey.home / "valkey")
        beat.signal(signal.SIGCONT)


@dataclass(slots=True)
class FailOver(Fault):
    """The primary is killed and stays down; its synchronous standby on another host is promoted.

    The standby is synchronous because data that an asynchronous one has not received is lost with
    the primary. After the fault, the promoted standby remains the primary.
    """

    def prepare(self, world: World) -> None:
        host = world.hosts["standby"]
        with host.entered():
            copy_to_standby(world.hosts["stores"], world.disks)
        environment = world.store_environment_on("standby")
        standby = standby_on(host, world.disks.standby, environment=environment)
        world.start("standby", "standby", standby)
        with connect_as_superuser(world.database) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
            _await_synchronous(connection)

    def begin(self, world: World) -> None:
        # Nothing restarts a part that is not in `parts`.
        world.parts.pop("postgres").kill()
        world.database = world.disks.standby
        with connect_as_superuser(world.database) as connection:
            connection.execute("SELECT pg_promote()")
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = ''")
            connection.execute("SELECT pg_reload_conf()")
        world.parts["postgres"] = world.parts.pop("standby")


def _await_synchronous(connection: psycopg.Connection) -> None:
    deadline_s = time.monotonic() + _SYNCHRONOUS_S
    query = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
    while connection.execute(query).fetchone() != (1,):
        if time.monotonic() > deadline_s:
            raise TimeoutError("The standby does not replicate synchronously.")
        time.sleep(0.1)


def scenarios() -> Iterator[Scenario]:
    yield ValkeyDataLoss("redis-without-its-file", hold_s=0.0)
    yield FailOver("postgres-fail-over", hold_s=0.0)  # must be the last: it leaves another primary
