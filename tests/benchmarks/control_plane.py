"""A control plane for a benchmark: Postgres with the tables, Valkey, and optionally tenants and the
Celery worker with its beat (which starts scheduled tasks)."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import django
import psycopg

from caret.local.caret_services import (
    build_beat_service,
    build_worker_service,
    manage_command,
    run_to_end,
)
from caret.local.databases.postgres import EmbeddedPostgres
from caret.local.databases.valkey import EmbeddedValkey
from caret.local.processes.process_tag import tag_environment
from caret.local.processes.service import Service, await_ready
from tests.benchmarks.installation import Home, create_home, started
from tests.benchmarks.results import say


@dataclass(frozen=True, slots=True)
class ControlPlane:
    home: Home
    postgres: Service
    valkey: Service

    @property
    def redis_url(self) -> str:
        return self.home.paths.redis_url.read_text().strip()

    @contextmanager
    def connect_as_tenant(self, tenant_id: str) -> Iterator[psycopg.Connection]:
        """Connect as the application's role, with row-level security limited to the tenant."""
        address = self.home.paths.app_database_url.read_text().strip()
        with psycopg.connect(address) as connection:
            # true: until the end of the transaction, which ends with this block.
            connection.execute("SELECT set_config('caret.tenant', %s, true)", [tenant_id])
            yield connection

    @contextmanager
    def connect_as_owner(self) -> Iterator[psycopg.Connection]:
        address = self.home.paths.owner_database_url.read_text().strip()
        with psycopg.connect(address) as connection:
            yield connection

    def make_tenants(self, count: int) -> list[str]:
        """Create tenants and return their IDs. Their slugs are tenant-0, tenant-1 and so on."""
        # Imported here: Django reads its settings at import, after `control_plane` has set a home.
        from tenants.identity.members.operations import create_tenant

        now = datetime.now(UTC)
        names = [f"tenant-{number}" for number in range(count)]
        return [create_tenant(slug=name, name=name, now=now) for name in names]

    def manage(self, *arguments: str) -> str:
        """Run a command of `manage.py` and return its output."""
        log = self.home.paths.logs / "manage.log"
        return run_to_end(
            arguments[0],
            manage_command(*arguments),
            log_file=log,
            environment=self.home.environment,
        )

    @contextmanager
    def run_worker_and_beat(self) -> Iterator["WorkerAndBeat"]:
        paths, environment = self.home.paths, self.home.environment
        worker = build_worker_service(paths=paths, environment=environment)
        beat = build_beat_service(paths=paths, environment=environment)
        with started(worker), started(beat):
            yield WorkerAndBeat(worker, beat)


@dataclass(slots=True)
class WorkerAndBeat:
    worker: Service
    beat: Service
    num_restarts: int = 0  # by `restart_ended`

    def restart_ended(self) -> None:
        """Restart the processes that have ended, as the supervisor of an installation does.

        Celery 5.7 ends when it loses its broker in the middle of a read.
        """
        for service in (self.worker, self.beat):
            if not service.child.is_alive:
                self.num_restarts += 1
                service.launch()


@contextmanager
def control_plane() -> Iterator[ControlPlane]:
    with create_home() as home:
        tag_variables = tag_environment(home.tag)
        postgres = EmbeddedPostgres(home.paths, tag_environment=tag_variables)
        valkey = EmbeddedValkey(home.paths, tag_environment=tag_variables)
        with started(postgres), started(valkey):
            plane = ControlPlane(home, postgres, valkey)
            say("Creating the tables")
            plane.manage("migrate", "--database", "owner")
            plane.manage("create_partitions")
            # From here on, Django's settings are those of this home.
            os.environ |= home.environment | {"DJANGO_SETTINGS_MODULE": "caret.settings"}
            django.setup()
            yield plane


def kill_and_start(service: Service) -> None:
    """Kill the service with SIGKILL, start it again and wait until it is ready."""
    service.child.kill()
    service.launch()
    await_ready(service)
