"""Caret's own processes as services (gateway, console, worker, beat), and one-off commands."""

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from caret.local.errors import ServiceFailed
from caret.local.paths import REPOSITORY, EmbeddedPaths
from caret.local.ports import LOOPBACK
from caret.local.processes.child_process import POLL_S, ChildSpec, dying_with_parent
from caret.local.processes.health_checks import is_responding, is_worker_responding
from caret.local.processes.log_rotation import read_tail, rotate_at_start
from caret.local.processes.service import CommandService

_READY_TIMEOUT_S = 120.0
_COMMAND_TIMEOUT_S = 300.0
# Identifies the worker in health checks; the host name may be unknown or shared.
_WORKER_NAME = "caret@localhost"


def manage_command(*arguments: str) -> tuple[str, ...]:
    """Return the command line of a `manage.py` command."""
    return (sys.executable, str(REPOSITORY / "manage.py"), *arguments)


def build_web_service(
    name: str,
    *,
    port: int,
    paths: EmbeddedPaths,
    environment: Mapping[str, str],
    host: str = LOOPBACK,
) -> CommandService:
    """Return the service for `manage.py gateway` or `manage.py console`.

    `name` is "Gateway" or "Console". Health checks connect to `host` and `port`.
    """
    spec = ChildSpec(
        name=name,
        command=dying_with_parent(manage_command(name.lower())),
        log_file=paths.logs / f"{name.lower()}.log",
        environment=environment,
        folder=REPOSITORY,
    )
    return CommandService(
        make_spec=lambda: spec,
        ready_check=lambda: is_responding(f"http://{host}:{port}/healthz"),
        name=name,
        ready_timeout_s=_READY_TIMEOUT_S,
    )


def build_worker_service(
    *, paths: EmbeddedPaths, environment: Mapping[str, str], concurrency: int = 1
) -> CommandService:
    spec = ChildSpec(
        name="Worker",
        command=_celery_command(
            *("worker", "--hostname", _WORKER_NAME, "--concurrency", str(concurrency)),
            *("--loglevel", "INFO"),
            # These features are for several workers. With one worker, they only cause traffic.
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        ),
        log_file=paths.logs / "worker.log",
        environment=environment,
        folder=REPOSITORY,
        # At SIGTERM, Celery finishes the running tasks. Tasks are idempotent, so a kill only delays
        # them.
        stop_grace_s=10.0,
    )
    return CommandService(
        make_spec=lambda: spec,
        ready_check=lambda: is_worker_responding(
            paths, environment=environment, worker=_WORKER_NAME
        ),
        name="Worker",
        ready_timeout_s=_READY_TIMEOUT_S,
    )


def build_beat_service(*, paths: EmbeddedPaths, environment: Mapping[str, str]) -> CommandService:
    pid_file = paths.home / "beat.pid"

    def make_spec() -> ChildSpec:
        # If Beat was killed, the file remains, and its PID may belong to another process by now.
        pid_file.unlink(missing_ok=True)
        return ChildSpec(
            name="Beat",
            command=_celery_command(
                *("beat", "--schedule", str(paths.home / "celerybeat-schedule")),
                *("--pidfile", str(pid_file), "--loglevel", "INFO"),
            ),
            log_file=paths.logs / "beat.log",
            environment=environment,
            folder=REPOSITORY,
        )

    # Beat has no health check. It writes its PID file after it has read its schedule.
    return CommandService(
        make_spec=make_spec,
        ready_check=pid_file.exists,
        name="Beat",
        ready_timeout_s=_READY_TIMEOUT_S,
    )


def run_to_end(
    name: str,
    command: tuple[str, ...],
    *,
    log_file: Path,
    environment: Mapping[str, str],
    on_wait: Callable[[], None] = lambda: None,
) -> str:
    """Run a command to its end and return its standard output.

    Its standard error goes to `log_file`. `on_wait` is called often while the command runs. Raises
    ServiceFailed if the command fails or takes too long; the message contains `name`.
    """
    rotate_at_start(log_file)
    with log_file.open("ab") as log:
        process = subprocess.Popen(
            dying_with_parent(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=REPOSITORY,
            env=dict(environment),
            start_new_session=True,
            text=True,
        )
    return _await_end(name, process, log_file=log_file, on_wait=on_wait)


def _await_end(
    name: str,
    process: subprocess.Popen[str],
    *,
    log_file: Path,
    on_wait: Callable[[], None],
) -> str:
    deadline_s = time.monotonic() + _COMMAND_TIMEOUT_S
    with process:
        try:
            while True:
                try:
                    output, _ = process.communicate(timeout=POLL_S)
                    break
                except subprocess.TimeoutExpired:
                    on_wait()
                    if time.monotonic() > deadline_s:
                        raise ServiceFailed(
                            f"{name} did not end within {_COMMAND_TIMEOUT_S:.0f} s.",
                            log_tail=read_tail(log_file),
                        ) from None
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise ServiceFailed(
            f"{name} failed with status {process.returncode}. Its log: {log_file}",
            log_tail=read_tail(log_file),
        )
    return output


def _celery_command(*arguments: str) -> tuple[str, ...]:
    return dying_with_parent((sys.executable, "-m", "celery", "-A", "caret.celery", *arguments))
