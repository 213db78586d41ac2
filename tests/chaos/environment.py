"""All of Caret on separate hosts, under load: the target of the faults.

    clients --- gateway-1, gateway-2 --- engine-1, engine-2
                        |
                      stores (Postgres, Valkey) --- workers (worker, beat)
                        |
                      standby (of Postgres, on demand)

With gateways in a distant region (regions.py), their own Redis stands between them and the stores.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import django

from caret.local.caret_services import (
    build_beat_service,
    build_web_service,
    build_worker_service,
    manage_command,
    run_to_end,
)
from caret.local.engines.engine import MAX_CONTEXT_TOKENS, engine_from_environment
from caret.local.engines.pools_file import render_pools, write_pools
from caret.local.paths import REPOSITORY, EmbeddedPaths
from caret.local.processes.child_process import ChildSpec, dying_with_parent
from caret.local.processes.health_checks import is_responding
from caret.local.processes.process_tag import tag_environment
from caret.local.processes.service import CommandService, Service, await_ready
from tests.benchmarks.installation import Home, create_home
from tests.benchmarks.results import say
from tests.chaos.client_results import Notebook
from tests.chaos.clock_skew_library import Clocks, make_clocks
from tests.chaos.hosts import Host, network
from tests.chaos.stores import Disks, application_urls, postgres_on, small_disks, valkey_on

HOSTS: Final = (
    *("gateway-1", "gateway-2", "engine-1", "engine-2"),
    *("stores", "standby", "workers", "clients"),
)
GATEWAY_PORT: Final = 8401
METRICS_PORT: Final = 8403
ENGINE_PORT: Final = 8402
_RESTART_S: Final = 1.0


@dataclass(slots=True)
class PlacedPart:
    """A service on its host."""

    part: Service
    host: Host

    def launch(self) -> None:
        with self.host.entered():
            self.part.launch()

    def await_ready(self) -> None:
        """Wait until the service is ready.

        Raises ServiceFailed.
        """
        with self.host.entered():
            await_ready(self.part)

    def is_ready(self) -> bool:
        if not self.part.child.is_alive:
            return False
        with self.host.entered():
            return self.part.is_ready()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the service and its children."""
        os.killpg(self.part.child.pid, number)

    def kill(self) -> None:
        """Send SIGKILL to the service and its children, and wait for the service's end."""
        self.part.child.kill()

    @property
    def pid(self) -> int:
        return self.part.child.pid


class Region(Protocol):
    """The region of gateways that are far from the stores."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return the names of the region's additional hosts."""

    @property
    def home_settings(self) -> Mapping[str, str]:
        """Return additional settings of the control plane."""

    def start(self, world: "World") -> None:
        """Start the services that the region's gateways need, and set the gateways' settings."""


@dataclass(slots=True)
class World:
    """Caret's parts on their hosts, and the means to disturb and repair them."""

    home: Home
    hosts: Mapping[str, Host]
    disks: Disks
    clocks: Clocks
    settings: Mapping[str, str] = field(repr=False)  # of Caret's processes on the hosts
    own_settings: dict[str, Mapping[str, str]] = field(default_factory=dict, repr=False)  # by host
    parts: dict[str, PlacedPart] = field(default_factory=dict)  # by the name in scenarios
    database: EmbeddedPaths = field(init=False)  # of the Postgres that is the primary now
    notebook: Notebook = field(default_factory=Notebook)
    _down_since_s: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.database = self.disks.postgres

    def environment_on(self, host: str) -> dict[str, str]:
        """Return the environment of Caret's processes on this host."""
        own = self.own_settings.get(host, {})
        return {**self.home.environment, **self.settings, **own, **self.clocks.environment_on(host)}

    def store_environment_on(self, host: str) -> dict[str, str]:
        """Return the environment of the stores' processes on this host.

        It contains the tag that marks them as processes of this run, and the host's clock.
        """
        return tag_environment(self.home.tag) | self.clocks.environment_on(host)

    def gateway_urls(self) -> tuple[str, ...]:
        names = ("gateway-1", "gateway-2")
        return tuple(f"http://{self.hosts[name].address}:{GATEWAY_PORT}" for name in names)

    def start(self, name: str, host: str, part: Service) -> None:
        """Start the service, and wait until it is ready.

        Raises ServiceFailed.
        """
        say(f"Starting {name}")
        placed_part = self.parts[name] = PlacedPart(part, self.hosts[host])
        placed_part.launch()
        placed_part.await_ready()

    def behaviour_file(self, engine: str) -> Path:
        return self.home.paths.home / f"{engine}.behaviour"

    def disk_of(self, store: str) -> Path:
        """Return the mount point of the store's disk."""
        paths = {"postgres": self.database, "valkey": self.disks.valkey}
        return paths[store].home.parent

    def revive(self) -> None:
        """Restart processes that have been down for a second, as a cluster's supervisor does."""
        now_s = time.monotonic()
        for name, placed_part in self.parts.items():
            if placed_part.part.child.is_alive:
                self._down_since_s.pop(name, None)
            elif now_s - self._down_since_s.setdefault(name, now_s) >= _RESTART_S:
                say(f"Restarting {name}")
                placed_part.launch()

    def is_ready(self) -> bool:
        return all(placed_part.is_ready() for placed_part in self.parts.values())

    def manage(self, *arguments: str) -> str:
        return run_to_end(
            arguments[0],
            manage_command(*arguments),
            log_file=self.home.paths.logs / "manage.log",
            environment=self.home.environment,
        )


@contextmanager
def world(*, region: Region | None = None) -> Iterator[World]:
    """Start everything, create the tables and set up Django in this process; no client runs yet.

    `region` is the region of the gateways, if it is not that of the stores.
    """
    with ExitStack() as stack:
        home = stack.enter_context(create_home())
        hosts = stack.enter_context(network((*HOSTS, *(region.hosts if region else ()))))
        disks = stack.enter_context(small_disks(home))
        clocks = make_clocks(home.paths.home)
        chaos_world = World(home, hosts, disks, clocks, {})
        environment = chaos_world.store_environment_on("stores")
        postgres = postgres_on(hosts["stores"], disks.postgres, environment=environment)
        valkey = valkey_on(hosts["stores"], disks.valkey, environment=environment)
        stack.callback(_stop_all, chaos_world)
        chaos_world.start("postgres", "stores", postgres)
        chaos_world.start("valkey", "stores", valkey)
        chaos_world.settings = application_urls(
            disks, stores=hosts["stores"], standby=hosts["standby"]
        )
        if region:
            home.environment.update(region.home_settings)
        _set_up_django(chaos_world)
        say("Creating the tables")
        chaos_world.manage("migrate", "--database", "owner")
        chaos_world.manage("create_partitions")
        if region:
            region.start(chaos_world)
        _start_engines(chaos_world)
        _start_gateways(chaos_world)
        _start_workers(chaos_world)
        yield chaos_world


def _set_up_django(chaos_world: World) -> None:
    """Set up Django in this process and for `manage.py` commands.

    They connect to the stores by Unix sockets, which no network fault affects.
    """
    chaos_world.home.environment.update(
        DATABASE_URL=chaos_world.disks.postgres.app_database_url.read_text().strip(),
        CARET_OWNER_DATABASE_URL=chaos_world.disks.postgres.owner_database_url.read_text().strip(),
        REDIS_URL=chaos_world.disks.valkey.redis_url.read_text().strip(),
    )
    os.environ |= chaos_world.home.environment | {"DJANGO_SETTINGS_MODULE": "caret.settings"}
    django.setup()


def _start_engines(chaos_world: World) -> None:
    for name in ("engine-1", "engine-2"):
        chaos_world.start(name, name, _engine(chaos_world, name))


def _engine(chaos_world: World, name: str) -> Service:
    host = chaos_world.hosts[name]
    address = ("--host", host.address, "--port", str(ENGINE_PORT))
    file = chaos_world.behaviour_file(name)
    file.write_text("")  # healthy
    spec = ChildSpec(
        name=name,
        command=dying_with_parent(
            (sys.executable, "-m", "tests.chaos.faulty_engine", *address, "--behaviour", str(file))
        ),
        log_file=chaos_world.home.paths.logs / f"{name}.log",
        environment=chaos_world.environment_on(name),
        folder=REPOSITORY,
    )
    return CommandService(
        make_spec=lambda: spec,
        ready_check=lambda: is_responding(f"http://{host.address}:{ENGINE_PORT}/health"),
        name=name,
        ready_timeout_s=60.0,
    )


def _start_gateways(chaos_world: World) -> None:
    model = engine_from_environment(0).model
    pools = render_pools(
        model=model.served_name,
        tokenizer=model.path,
        max_context_tokens=MAX_CONTEXT_TOKENS,
        replicas=[
            f"http://{chaos_world.hosts[name].address}:{ENGINE_PORT}"
            for name in ("engine-1", "engine-2")
        ],
        has_token_healing=False,
    )
    write_pools(chaos_world.home.paths.pools, pools)
    for name in ("gateway-1", "gateway-2"):
        chaos_world.start(name, name, _gateway(chaos_world, name))


def _gateway(chaos_world: World, name: str) -> Service:
    host = chaos_world.hosts[name]
    folder = EmbeddedPaths(chaos_world.home.paths.home / name)  # for its journal and its log
    folder.logs.mkdir(parents=True)
    settings = {
        "CARET_GATEWAY_HOST": host.address,
        "CARET_GATEWAY_PORT": str(GATEWAY_PORT),
        "CARET_METRICS_HOST": host.address,
        "CARET_METRICS_PORT": str(METRICS_PORT),
        "CARET_JOURNAL_DIR": str(folder.journal),
        "CARET_POOLS_FILE": str(chaos_world.home.paths.pools),
    }
    return build_web_service(
        "Gateway",
        port=GATEWAY_PORT,
        host=host.address,
        paths=folder,
        environment=chaos_world.environment_on(name) | settings,
    )


def _start_workers(chaos_world: World) -> None:
    paths, environment = chaos_world.home.paths, chaos_world.environment_on("workers")
    chaos_world.start(
        "worker", "workers", build_worker_service(paths=paths, environment=environment)
    )
    chaos_world.start("beat", "workers", build_beat_service(paths=paths, environment=environment))


def _stop_all(chaos_world: World) -> None:
    for placed_part in reversed(chaos_world.parts.values()):
        placed_part.part.child.stop()
