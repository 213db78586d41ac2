"""Starts services in order, keeps them running and stops them all.

A service that dies is restarted after a pause, which grows with each death. A service that keeps
dying ends the whole installation with ServiceFailed. In `make dev`, a service that fails to start
waits for a change of its code instead.

Everything runs in one thread, because children ask the kernel to kill them when the thread that
started them ends.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum, auto

from caret.local.errors import ServiceFailed
from caret.local.processes.log_rotation import read_tail, rotate_while_open
from caret.local.processes.service import Service, await_ready

MAX_DEATHS = 6  # within WINDOW_S; after one more, the service is not restarted
WINDOW_S = 120.0
_FIRST_DELAY_S = 0.2  # before a restart


@dataclass(slots=True)
class RestartPolicy:
    """Decides how soon a service that died is restarted, from its recent deaths."""

    _deaths_s: deque[float] = field(default_factory=deque)  # monotonic times, oldest first

    def next_delay_s(self, now_s: float) -> float | None:
        """Record a death, and return the seconds to wait before the restart.

        They double with each recent death. None: do not restart the service.
        """
        while self._deaths_s and now_s - self._deaths_s[0] > WINDOW_S:
            self._deaths_s.popleft()
        self._deaths_s.append(now_s)
        if len(self._deaths_s) > MAX_DEATHS:
            return None
        return float(_FIRST_DELAY_S * 2 ** (len(self._deaths_s) - 1))


_CHECK_INTERVAL_S = 0.1
_READINESS_INTERVAL_S = 0.5  # longer, because a check of readiness is a request to the service
_LOG_ROTATION_INTERVAL_S = 30.0
# A service whose code has changed need not finish its work.
_RESTART_GRACE_S = 1.0
# Gateway and console, which were launched first, restart first. Together with the others, they
# would start more slowly.
_MAX_RESTARTS_AT_ONCE = 2


class _ServiceState(Enum):
    STARTING = auto()
    READY = auto()
    PAUSING = auto()  # dead; it is restarted at `next_launch_s`
    OUTDATED = auto()  # its code has changed: it waits to be stopped and restarted
    BROKEN = auto()  # dead until its code changes


@dataclass(slots=True)
class _WatchedService:
    service: Service
    is_foundation: bool  # stopped after all other services
    state: _ServiceState = _ServiceState.STARTING
    # Monotonic times.
    launched_s: float = 0.0
    next_launch_s: float = 0.0  # used in the state PAUSING
    next_check_s: float = 0.0  # of readiness
    restarts: RestartPolicy = field(default_factory=RestartPolicy)


class Supervisor:
    """Supervises the launched services, in the order of their launch.

    With `tolerates_broken`, a service that fails to start waits for a restart, because its code is
    being edited.
    """

    def __init__(
        self, *, print_line: Callable[[str], None], tolerates_broken: bool = False
    ) -> None:
        self._print_line = print_line
        self._tolerates_broken = tolerates_broken
        self._services: list[_WatchedService] = []
        self._next_log_rotation_s = 0.0

    def launch(self, service: Service, *, is_foundation: bool = False) -> None:
        """Launch a service. `is_foundation`: other services write to it, so it is stopped last."""
        service.launch()
        self._services.append(_WatchedService(service, is_foundation, launched_s=time.monotonic()))

    def await_ready(self, service: Service, *, on_wait: Callable[[], None]) -> None:
        await_ready(service, on_wait=on_wait)
        self._find_watched(service).state = _ServiceState.READY

    def supervise(self, *, until: Callable[[], bool], on_launch: Callable[[], None]) -> None:
        """Supervise until `until` returns True; call `on_launch` after each new launch.

        Raises ServiceFailed if a service dies too often.
        """
        while not until():
            for watched_service in self._services:
                self._check_service(watched_service, on_launch=on_launch)
            self._rotate_logs()
            time.sleep(_CHECK_INTERVAL_S)

    def restart(self, services: Iterable[Service]) -> None:
        """Restart the services during supervision; this does not count as a death."""
        for service in services:
            self._find_watched(service).state = _ServiceState.OUTDATED

    def stop(self) -> None:
        for is_foundation in (False, True):
            services = [
                watched_service.service
                for watched_service in reversed(self._services)
                if watched_service.is_foundation is is_foundation
            ]
            for service in services:
                service.child.request_stop()
            for service in services:
                service.child.stop()

    def _find_watched(self, service: Service) -> _WatchedService:
        return next(
            watched_service
            for watched_service in self._services
            if watched_service.service is service
        )

    def _check_service(
        self, watched_service: _WatchedService, *, on_launch: Callable[[], None]
    ) -> None:
        now_s = time.monotonic()
        if watched_service.state is _ServiceState.PAUSING:
            if now_s >= watched_service.next_launch_s:
                self._launch_again(watched_service, on_launch=on_launch)
        elif watched_service.state is _ServiceState.OUTDATED:
            self._replace(watched_service, on_launch=on_launch)
        elif watched_service.state is _ServiceState.BROKEN:
            pass
        elif not watched_service.service.child.is_alive:
            self._record_death(watched_service, now_s=now_s)
        elif watched_service.state is _ServiceState.STARTING:
            self._check_readiness(watched_service, now_s=now_s)

    def _record_death(self, watched_service: _WatchedService, *, now_s: float) -> None:
        service = watched_service.service
        status = service.child.exit_status
        service.child.kill()  # the rest of its process group could still occupy its port
        if self._tolerates_broken and watched_service.state is _ServiceState.STARTING:
            watched_service.state = _ServiceState.BROKEN
            self._print_line(read_tail(service.child.spec.log_file))
            self._print_line(
                f"{service.name} does not start. It is started again when its code changes."
            )
            return
        delay_s = watched_service.restarts.next_delay_s(now_s)
        if delay_s is None:
            raise ServiceFailed(
                f"{service.name} ended {MAX_DEATHS + 1} times within {WINDOW_S:.0f} s (last status"
                f" {status}); Caret stops. Its log: {service.child.spec.log_file}",
                log_tail=read_tail(service.child.spec.log_file),
            )
        self._print_line(f"{service.name} ended with status {status}; it is started again.")
        watched_service.state = _ServiceState.PAUSING
        watched_service.next_launch_s = now_s + delay_s

    def _replace(self, watched_service: _WatchedService, *, on_launch: Callable[[], None]) -> None:
        starting = [other for other in self._services if other.state is _ServiceState.STARTING]
        if len(starting) < _MAX_RESTARTS_AT_ONCE:
            watched_service.service.child.stop(max_grace_s=_RESTART_GRACE_S)
            self._launch_again(watched_service, on_launch=on_launch)

    def _launch_again(
        self, watched_service: _WatchedService, *, on_launch: Callable[[], None]
    ) -> None:
        watched_service.service.launch()
        watched_service.state = _ServiceState.STARTING
        watched_service.launched_s = time.monotonic()
        on_launch()

    def _check_readiness(self, watched_service: _WatchedService, *, now_s: float) -> None:
        if now_s < watched_service.next_check_s:
            return
        watched_service.next_check_s = now_s + _READINESS_INTERVAL_S
        if watched_service.service.is_ready():
            watched_service.state = _ServiceState.READY
            self._print_line(
                f"{watched_service.service.name} is ready again"
                f" after {now_s - watched_service.launched_s:.1f} s."
            )
        elif now_s - watched_service.launched_s > watched_service.service.ready_timeout_s:
            watched_service.service.child.kill()  # the next check counts it as a death

    def _rotate_logs(self) -> None:
        if time.monotonic() < self._next_log_rotation_s:
            return
        self._next_log_rotation_s = time.monotonic() + _LOG_ROTATION_INTERVAL_S
        for watched_service in self._services:
            rotate_while_open(watched_service.service.child.spec.log_file)
