"""The supervisor's view of a service: a database, an engine, or a process of Caret."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self

from caret.local.processes.child_process import ChildProcess, ChildSpec


class Service(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def child(self) -> ChildProcess:
        """The process of the last launch."""

    @property
    def ready_timeout_s(self) -> float: ...

    def launch(self) -> None:
        """Start or restart the process without waiting for it."""

    def is_ready(self) -> bool:
        """Return within a few seconds whether the service can be used."""


def await_ready(service: Service, *, on_wait: Callable[[], None] = lambda: None) -> None:
    """Wait until the service is ready, and call `on_wait` often.

    Raises ServiceFailed if the service ends or takes too long. After any error, it is stopped.
    """
    try:
        service.child.wait_ready(
            service.is_ready, timeout_s=service.ready_timeout_s, on_wait=on_wait
        )
    except BaseException:
        service.child.stop()
        raise


class LaunchedService(ABC):
    """A service that keeps the process of its last launch.

    As a context manager, it starts the service, and stops it when the block ends.
    """

    name: str
    ready_timeout_s: float
    _child: ChildProcess | None = None

    def __enter__(self) -> Self:
        self.launch()
        await_ready(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.child.stop()

    @property
    def child(self) -> ChildProcess:
        assert self._child is not None, f"{self.name} was not launched"
        return self._child

    @abstractmethod
    def launch(self) -> None:
        """Start or restart the process without waiting for it."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Return within a few seconds whether the service can be used."""


@dataclass
class CommandService(LaunchedService):
    """A service made of a command and a readiness check."""

    make_spec: Callable[[], ChildSpec]  # called at each launch
    ready_check: Callable[[], bool]
    name: str
    ready_timeout_s: float

    def launch(self) -> None:
        self._child = ChildProcess(self.make_spec())
        self._child.start()

    def is_ready(self) -> bool:
        return self.ready_check()
