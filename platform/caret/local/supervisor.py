"""Starts the parts in their order, keeps them alive, and ends them all.

Parts that die are launched again after a growing pause; one that keeps dying ends the whole with
PartFailed. In `make dev` it does not: it waits until its code changes.

Everything runs in one thread: children ask the kernel to die with the thread that started them.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum, auto

from caret.local.errors import PartFailed
from caret.local.log_rotation import rotate_while_open, tail
from caret.local.restart_policy import MAX_DEATHS, WINDOW_S, RestartPolicy
from caret.local.service import Service, await_ready

_LOOK_S = 0.1
_LOG_CARE_S = 30.0
# A part whose code has changed need not finish its work.
_RESTART_GRACE_S = 1.0
# Restart console and gateway first: with all parts at once, each would start more slowly.
_MAX_RESTARTS_AT_ONCE = 2


class _ServiceState(Enum):
    STARTING = auto()
    READY = auto()
    PAUSING = auto()  # dead, to be launched again at `next_launch_s`
    OUTDATED = auto()  # its code has changed: to be stopped and launched again in its turn
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
    """Holds what was launched, in that order.

    `tolerates_broken`: a part that does not start waits for `restart`, as somebody is editing it.
    """

    def __init__(self, *, tell: Callable[[str], None], tolerates_broken: bool = False) -> None:
        self._tell = tell
        self._tolerates_broken = tolerates_broken
        self._watched: list[_WatchedService] = []
        self._next_log_care_s = 0.0

    def launch(self, part: Service, *, is_foundation: bool = False) -> None:
        """`is_foundation`: others write to it until they end, so it is stopped after them."""
        part.launch()
        self._watched.append(_WatchedService(part, is_foundation, launched_s=time.monotonic()))

    def await_ready(self, part: Service, *, on_wait: Callable[[], None]) -> None:
        await_ready(part, on_wait=on_wait)
        self._find(part).state = _ServiceState.READY

    def supervise(self, *, until: Callable[[], bool], on_launch: Callable[[], None]) -> None:
        """Returns when `until` says so; `on_launch` is called after each new launch.

        Raises PartFailed when a part dies too often.
        """
        while not until():
            for watched in self._watched:
                self._check_service(watched, on_launch=on_launch)
            self._rotate_logs()
            time.sleep(_LOOK_S)

    def restart(self, parts: Iterable[Service]) -> None:
        """Have `supervise` stop and launch them again. Nothing of this counts as a death."""
        for part in parts:
            self._find(part).state = _ServiceState.OUTDATED

    def stop(self) -> None:
        for is_foundation in (False, True):
            parts = [w.part for w in reversed(self._watched) if w.is_foundation is is_foundation]
            for part in parts:
                part.child.request_stop()
            for part in parts:
                part.child.stop()

    def _find(self, part: Service) -> _WatchedService:
        return next(watched for watched in self._watched if watched.part is part)

    def _check_service(self, watched: _WatchedService, *, on_launch: Callable[[], None]) -> None:
        now_s = time.monotonic()
        if watched.state is _ServiceState.PAUSING:
            if now_s >= watched.next_launch_s:
                self._launch_again(watched, on_launch=on_launch)
        elif watched.state is _ServiceState.OUTDATED:
            self._replace(watched, on_launch=on_launch)
        elif watched.state is _ServiceState.BROKEN:
            pass
        elif not watched.part.child.is_alive:
            self._record_death(watched, now_s=now_s)
        elif watched.state is _ServiceState.STARTING:
            self._check_readiness(watched, now_s=now_s)

    def _record_death(self, watched: _WatchedService, *, now_s: float) -> None:
        part = watched.part
        status = part.child.exit_status
        part.child.kill()  # what its group has left behind would hold its port
        if self._tolerates_broken and watched.state is _ServiceState.STARTING:
            watched.state = _ServiceState.BROKEN
            self._tell(tail(part.child.spec.log_file))
            self._tell(f"{part.name} does not start. It is started again when its code changes.")
            return
        delay_s = watched.restarts.next_delay_s(now_s)
        if delay_s is None:
            raise PartFailed(
                f"{part.name} ended {MAX_DEATHS + 1} times within {WINDOW_S:.0f} s (last status"
                f" {status}); Caret gives up. Its log: {part.child.spec.log_file}",
                log_tail=tail(part.child.spec.log_file),
            )
        self._tell(f"{part.name} ended with status {status}; it is started again.")
        watched.state = _ServiceState.PAUSING
        watched.next_launch_s = now_s + delay_s

    def _replace(self, watched: _WatchedService, *, on_launch: Callable[[], None]) -> None:
        starting = [other for other in self._watched if other.state is _ServiceState.STARTING]
        if len(starting) < _MAX_RESTARTS_AT_ONCE:
            watched.part.child.stop(max_grace_s=_RESTART_GRACE_S)
            self._launch_again(watched, on_launch=on_launch)

    def _launch_again(self, watched: _WatchedService, *, on_launch: Callable[[], None]) -> None:
        watched.part.launch()
        watched.state = _ServiceState.STARTING
        watched.launched_s = time.monotonic()
        on_launch()

    def _check_readiness(self, watched: _WatchedService, *, now_s: float) -> None:
        if now_s < watched.next_check_s:
            return
        watched.next_check_s = now_s + 5 * _LOOK_S
        if watched.part.is_ready():
            watched.state = _ServiceState.READY
            self._tell(
                f"{watched.part.name} is ready again after {now_s - watched.launched_s:.1f} s."
            )
        elif now_s - watched.launched_s > watched.part.ready_timeout_s:
            watched.part.child.kill()  # the next look counts it as a death

    def _rotate_logs(self) -> None:
        if time.monotonic() < self._next_log_care_s:
            return
        self._next_log_care_s = time.monotonic() + _LOG_CARE_S
        for watched in self._watched:
            rotate_while_open(watched.part.child.spec.log_file)
