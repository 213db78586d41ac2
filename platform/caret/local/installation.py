"""A running local installation: starts all services in order and keeps them running."""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from itertools import repeat
from types import TracebackType
from typing import Any, Self

from caret.local.caret_services import manage_command, run_to_end
from caret.local.databases.credentials import write_credentials
from caret.local.engines.pools_file import read_pools
from caret.local.errors import ServiceFailed
from caret.local.paths import REPOSITORY, EmbeddedPaths
from caret.local.ports import require_free
from caret.local.processes.process_tag import home_digest, new_tag, terminate_tagged
from caret.local.processes.reload import find_affected_services, watch_changed_files
from caret.local.processes.service import Service
from caret.local.processes.supervisor import Supervisor
from caret.local.processes.watchdog import Watchdog
from caret.local.progress import StartProgress
from caret.local.services import OPERATOR_PATH, environment_of_children, make_services
from caret.local.state_file import OperatorEntry, RunningInstallation, StatePoolEntry, write_up_file
from caret.local.up_settings import UpSettings

_LEFTOVER_GRACE_S = 5.0


class Installation:
    """A local installation. Hold the lock of its CARET_HOME around the `with` block.

    Leaving the `with` block stops all services. No process of the installation remains.
    """

    def __init__(self, settings: UpSettings, *, progress: StartProgress) -> None:
        self._settings = settings
        self.progress = progress
        self._tag = new_tag(settings.paths.home)
        self.environment = environment_of_children(settings, tag=self._tag)
        self._supervisor = Supervisor(
            # Not `progress.print_line` itself: `up` replaces `self.progress` when it detaches.
            print_line=lambda text: self.progress.print_line(text),
            tolerates_broken=settings.has_reload,
        )
        self._watchdog = Watchdog(self._tag)
        self._demonstration: dict[str, Any] = {"tenants": [], "operator": None}

    def __enter__(self) -> Self:
        """Prepare the start.

        Raises PortInUse, BadSetting or MissingFeature before anything has started.
        """
        self._terminate_leftovers()
        require_free(*self._settings.needed_ports)
        write_credentials(self._settings.paths)
        self._services = make_services(self._settings, tag=self._tag)
        self._watchdog.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._settings.paths.up_file.unlink(missing_ok=True)
            with self.progress.show_step("Stop", "all processes, databases last"):
                self._supervisor.stop()
        finally:
            self._watchdog.__exit__(kind, error, traceback)

    def start(self) -> None:
        """Start all services and wait until they are ready.

        Raises ServiceFailed.
        """
        for service in self._services.kv_tier:  # engines connect to the KV tier when they start
            self._start_foundation(service)
        # Engines take longest to start, so they are launched early and awaited last.
        for service in self._services.engines:
            self._supervisor.launch(service)
        for service in self._services.foundations:
            self._start_foundation(service)
        self._migrate()
        for service in self._services.programs:
            self._supervisor.launch(service)
        self._make_tenants()
        for service in self._services.programs:
            self._await_ready(service)
        for service in self._services.engines:
            self._await_ready(service)
        self._write_up_file()

    def supervise(self) -> None:
        """Keep all services running until a signal raises ShutdownRequested.

        Raises ServiceFailed if a service keeps failing.
        """
        # `repeat(())`: no file ever changes.
        changes = watch_changed_files(REPOSITORY) if self._settings.has_reload else repeat(())

        def check() -> bool:
            self._watchdog.ensure_running()
            self._restart_after(next(changes))
            return False  # only a signal ends the supervision

        self._supervisor.supervise(until=check, on_launch=self._write_up_file)

    def describe(self) -> RunningInstallation:
        ports = self._settings.ports
        return {
            "console_url": ports.console.url,
            "gateway_url": ports.gateway.url,
            "pools": self._describe_pools(),
            "tenants": self._demonstration["tenants"],
            "operator": self._describe_operator(),
            "supervisor_pid": os.getpid(),
        }

    def _restart_after(self, files: Iterable[str]) -> None:
        """Restart the services that run these files."""
        for file in sorted(files):
            affected = find_affected_services(file)
            services = [service for service in self._services.programs if service.name in affected]
            if services:
                names = ", ".join(service.name for service in services)
                self.progress.print_line(f"{file} was saved; restarting: {names}.")
                self._supervisor.restart(services)

    def _terminate_leftovers(self) -> None:
        """Terminate processes of an earlier run whose supervisor and watchdog were killed."""
        num_ended = terminate_tagged(
            home_digest(self._settings.paths.home), grace_s=_LEFTOVER_GRACE_S
        )
        if num_ended:
            self.progress.print_line(
                f"Processes that an earlier run had left behind, now stopped: {num_ended}."
            )

    def _start_foundation(self, service: Service) -> None:
        """Start a service that others need before they can start, and wait until it is ready."""
        with self.progress.show_step(service.name, describe_step(service.name)) as tick:
            self._supervisor.launch(service, is_foundation=True)
            self._supervisor.await_ready(service, on_wait=tick)

    def _await_ready(self, service: Service) -> None:
        with self.progress.show_step(service.name, describe_step(service.name)) as tick:
            self._supervisor.await_ready(service, on_wait=tick)

    def _migrate(self) -> None:
        with self.progress.show_step("Migrations", describe_step("Migrations")) as tick:
            for description, *arguments in (
                ("The migration of the database", "migrate", *_MIGRATE),
                ("The creation of partitions", "create_partitions"),
            ):
                run_to_end(
                    description,
                    manage_command(*arguments),
                    log_file=self._settings.paths.logs / "migrate.log",
                    environment=self.environment,
                    on_wait=tick,
                )

    def _make_tenants(self) -> None:
        with self.progress.show_step("Tenants", describe_step("Tenants")) as tick:
            self._demonstration = ensure_demonstration(
                self._settings.paths, environment=self.environment, on_wait=tick
            )

    def _write_up_file(self) -> None:
        write_up_file(self._settings.paths.up_file, self.describe())

    def _describe_operator(self) -> OperatorEntry | None:
        if (operator := self._demonstration["operator"]) is None:
            return None
        path = self.environment[OPERATOR_PATH].strip("/")
        return OperatorEntry(
            url=f"{self._settings.ports.console.url}/{path}/",
            handle=operator["handle"],
            password=operator["password"],
            totp_uri=operator["totp_uri"],
        )

    def _describe_pools(self) -> list[StatePoolEntry]:
        pids = {
            engine.url: service.child.pid
            # With CARET_POOLS_FILE, no engine was started, and `completion_engines` is empty.
            for engine, service in zip(
                self._settings.engines, self._services.completion_engines, strict=False
            )
        }
        return [
            {"name": pool.name, "tier": pool.tier, "url": replica, "pid": pids.get(replica)}
            for pool in read_pools(self._settings.pools_file)
            for replica in pool.replicas
        ]


# Without Django's system checks, which would import the views of all URLs. The console runs the
# checks at its start.
_MIGRATE = ("--database", "owner", "--no-input", "--skip-checks")
_DESCRIPTIONS = {
    "KV store": "a Valkey server for the KV tier",
    "LMCache": "the KV tier, where engines store cached prompts",
    "Postgres": "the control plane's database",
    "Valkey": "snapshots, queues and usage events",
    "Migrations": "tables and row-level security policies",
    "Tenants": "acme, globex and an operator for the demonstration",
    "Gateway": "editors connect here",
    "Console": "web pages and REST API",
    "Worker": "ingests usage, publishes snapshots",
    "Beat": "schedules the periodic tasks",
    "Engine": "vLLM loads the model (launched earlier)",
    "Quality engine": "vLLM loads the model (launched earlier)",
    "Speculating engine": "vLLM loads the model (launched earlier)",
    "Embeddings": "vLLM loads the retrieval model (launched earlier)",
}


def describe_step(title: str) -> str:
    """Return the step's description, as the terminal shows it."""
    return _DESCRIPTIONS[title]


def list_step_titles(settings: UpSettings) -> tuple[str, ...]:
    """Return the titles of the steps in the order in which the terminal shows them."""
    kv_tier = () if settings.kv_tier is None else ("KV store", "LMCache")
    retrieval = () if settings.embeddings is None else ("Embeddings",)
    engines = () if settings.own_pools else tuple(engine.name for engine in settings.engines)
    # The user's own services, which run elsewhere, have no step.
    external_services = {"Postgres": settings.has_own_postgres, "Valkey": settings.has_own_redis}
    steps = (title for title in _STEPS if not external_services.get(title))
    # "a completion" is no step of Installation. It is in the list because each step shows the title
    # of the next one: after the last step, `up` requests a completion as a test.
    return (*kv_tier, *steps, *engines, *retrieval, "a completion")


_STEPS = (
    "Postgres",
    "Valkey",
    "Migrations",
    "Tenants",
    "Gateway",
    "Console",
    "Worker",
    "Beat",
)


def ensure_demonstration(
    paths: EmbeddedPaths, *, environment: Mapping[str, str], on_wait: Callable[[], None]
) -> dict[str, Any]:
    """Create the demonstration's tenants and operator if they are missing, and return them.

    Raises ServiceFailed.
    """
    log_file = paths.logs / "demo-tenants.log"
    output = run_to_end(
        "The command that makes the demonstration tenants",
        manage_command("create_demo_tenants", "--state", str(paths.secrets / "demo.json")),
        log_file=log_file,
        environment=environment,
        on_wait=on_wait,
    )
    try:
        demonstration: dict[str, Any] = json.loads(output)
    except json.JSONDecodeError as error:
        # Never include the output itself: it contains passwords.
        raise ServiceFailed(
            f"`manage.py create_demo_tenants` did not print JSON. Its log: {log_file}"
        ) from error
    return demonstration
