"""Starts services in order, keeps them running and stops them all.

A service that dies is restarted after a growing pause. One that keeps dying ends the whole
installation with ServiceFailed. In `make dev` it waits for a change of its code instead.

Everything runs in one thread: children ask the kernel to kill them with the thread that started
them.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum, auto

from caret.local.errors import ServiceFailed
from caret.local.processes.log_rotation import rotate_while_open, tail
from caret.local.processes.service import Service, await_ready

MAX_DEATHS = 6
WINDOW_S = 120.0
_FIRST_DELAY_S = 0.2


@dataclass(slots=True)
class RestartPolicy:
    """The recent deaths of one service."""

    _deaths_s: deque[float] = field(default_factory=deque)

    def next_delay_s(self, now_s: float) -> float | None:
        """Return the seconds to wait, doubled with each recent death; None means give up."""
        while self._deaths_s and now_s - self._deaths_s[0] > WINDOW_S:
            self._deaths_s.popleft()
        self._deaths_s.append(now_s)
        if len(self._deaths_s) > MAX_DEATHS:
            return None
        return float(_FIRST_DELAY_S * 2 ** (len(self._deaths_s) - 1))


_LOOK_S = 0.1
_LOG_CARE_S = 30.0
# A service whose code has changed need not finish its work.
_RESTART_GRACE_S = 1.0
# Console and gateway restart first: all services at once would start more slowly.
_MAX_RESTARTS_AT_ONCE = 2


class _ServiceState(Enum):
    STARTING = auto()
    READY = auto()
    PAUSING = auto()  # dead, to be restarted at `next_launch_s`
    OUTDATED = auto()  # its code has changed: to be stopped and restarted in its turn
    BROKEN = auto()  # dead until its code changes


@dataclass(slots=True)
class _WatchedService:
    part: Service
    is_foundation: bool
    state: _ServiceState = _ServiceState.STARTING
    launched_s: float = 0.0
    next_launch_s: float = 0.0
    next_check_s: float = 0.0
    restarts: RestartPolicy = field(default_factory=RestartPolicy)


class Supervisor:
    """Supervises the launched services, in the order of their launch.

    With `tolerates_broken`, a service that fails to start waits for a restart, because its code is
    being edited.
    """

    def __init__(self, *, tell: Callable[[str], None], tolerates_broken: bool = False) -> None:
        self._tell = tell
        self._tolerates_broken = tolerates_broken
        self._services: list[_WatchedService] = []
        self._next_log_care_s = 0.0

    def launch(self, part: Service, *, is_foundation: bool = False) -> None:
        """Launch a service. One with `is_foundation` is stopped last: the others write to it."""
        part.launch()
        self._services.append(_WatchedService(part, is_foundation, launched_s=time.monotonic()))

    def await_ready(self, part: Service, *, on_wait: Callable[[], None]) -> None:
        await_ready(part, on_wait=on_wait)
        self._find(part).state = _ServiceState.READY

    def supervise(self, *, until: Callable[[], bool], on_launch: Callable[[], None]) -> None:
        """Supervise until `until` returns True; call `on_launch` after each restart.

        Raises ServiceFailed if a service dies too often.
        """
        while not until():
            for service in self._services:
                self._check_service(service, on_launch=on_launch)
            self._rotate_logs()
            time.sleep(_LOOK_S)

    def restart(self, parts: Iterable[Service]) -> None:
        """Restart the services during supervision; this does not count as a death."""
        for part in parts:
            self._find(part).state = _ServiceState.OUTDATED

    def stop(self) -> None:
        for is_foundation in (False, True):
            parts = [w.part for w in reversed(self._services) if w.is_foundation is is_foundation]
            for part in parts:
                part.child.request_stop()
            for part in parts:
                part.child.stop()

    def _find(self, part: Service) -> _WatchedService:
        return next(service for service in self._services if service.part is part)

    def _check_service(self, service: _WatchedService, *, on_launch: Callable[[], None]) -> None:
        now_s = time.monotonic()
        if service.state is _ServiceState.PAUSING:
            if now_s >= service.next_launch_s:
                self._launch_again(service, on_launch=on_launch)
        elif service.state is _ServiceState.OUTDATED:
            self._replace(service, on_launch=on_launch)
        elif service.state is _ServiceState.BROKEN:
            pass
        elif not service.part.child.is_alive:
            self._record_death(service, now_s=now_s)
        elif service.state is _ServiceState.STARTING:
            self._check_readiness(service, now_s=now_s)

    def _record_death(self, service: _WatchedService, *, now_s: float) -> None:
        part = service.part
        status = part.child.exit_status
        part.child.kill()  # the rest of its process group could still occupy its port
        if self._tolerates_broken and service.state is _ServiceState.STARTING:
            service.state = _ServiceState.BROKEN
            self._tell(tail(part.child.spec.log_file))
            self._tell(f"{part.name} does not start. It is started again when its code changes.")
            return
        delay_s = service.restarts.next_delay_s(now_s)
        if delay_s is None:
            raise ServiceFailed(
                f"{part.name} ended {MAX_DEATHS + 1} times within {WINDOW_S:.0f} s (last status"
                f" {status}); Caret stops. Its log: {part.child.spec.log_file}",
                log_tail=tail(part.child.spec.log_file),
            )
        self._tell(f"{part.name} ended with status {status}; it is started again.")
        service.state = _ServiceState.PAUSING
        service.next_launch_s = now_s + delay_s

    def _replace(self, service: _WatchedService, *, on_launch: Callable[[], None]) -> None:
        starting = [other for other in self._services if other.state is _ServiceState.STARTING]
        if len(starting) < _MAX_RESTARTS_AT_ONCE:
            service.part.child.stop(max_grace_s=_RESTART_GRACE_S)
            self._launch_again(service, on_launch=on_launch)

    def _launch_again(self, service: _WatchedService, *, on_launch: Callable[[], None]) -> None:
        service.part.launch()
        service.state = _ServiceState.STARTING
        service.launched_s = time.monotonic()
        on_launch()

    def _check_readiness(self, service: _WatchedService, *, now_s: float) -> None:
        if now_s < service.next_check_s:
            return
        service.next_check_s = now_s + 5 * _LOOK_S
        if service.part.is_ready():
            service.state = _ServiceState.READY
            self._tell(
                f"{service.part.name} is ready again after {now_s - service.launched_s:.1f} s."
            )
        elif now_s - service.launched_s > service.part.ready_timeout_s:
            service.part.child.kill()  # the next check counts it as a death

    def _rotate_logs(self) -> None:
        if time.monotonic() < self._next_log_care_s:
            return
        self._next_log_care_s = time.monotonic() + _LOG_CARE_S
        for service in self._services:
            rotate_while_open(service.part.child.spec.log_file)
