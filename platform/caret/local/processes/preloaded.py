"""For `make dev`: halves the time of a restart of the console by importing libraries in advance.

While a console runs, a second process imports the libraries, and then waits to become the next
console. Of Caret's code, it imports only this module and the modules that this one imports, because
the rest may change before the restart.
"""

import gc
import importlib
import runpy
import sys
from dataclasses import replace
from typing import Final

from caret.local.paths import REPOSITORY
from caret.local.processes.child_process import ChildProcess, ChildSpec, dying_with_parent
from caret.local.processes.service import CommandService

# The slowest imports that do not need Django to be set up.
_LIBRARIES: Final = (
    *("scim2_models", "django.contrib.admin", "psycopg", "redis.asyncio", "aiohttp", "uvicorn"),
    *("structlog", "reportlab.platypus", "pyarrow", "fido2.server"),
)


class PreloadedService:
    """A service whose next process is started as soon as the current one is ready."""

    def __init__(self, service: CommandService) -> None:
        self._service = service
        self.name = service.name
        self.ready_timeout_s = service.ready_timeout_s
        self._child: ChildProcess | None = None
        self._next: ChildProcess | None = None  # waits for the end of its standard input

    @property
    def child(self) -> ChildProcess:
        assert self._child is not None, f"{self.name} was not launched"
        return self._child

    def launch(self) -> None:
        self._child = self._ensure_waiting_child()
        self._next = None
        self._child.close_input()

    def is_ready(self) -> bool:
        """Return whether the current process is ready; if it is, start the next one."""
        is_ready = self._service.is_ready()
        if is_ready:
            self._next = self._ensure_waiting_child()
        return is_ready

    def _ensure_waiting_child(self) -> ChildProcess:
        """Return the waiting process; start one if there is none."""
        if self._next is not None and self._next.is_alive:
            return self._next
        child = ChildProcess(_make_waiting_spec(self._service.make_spec()))
        child.start()
        return child


def _make_waiting_spec(spec: ChildSpec) -> ChildSpec:
    # The service "Console" runs `manage.py console`: its name in lower case is the command.
    command = (sys.executable, "-m", "caret.local.processes.preloaded", spec.name.lower())
    return replace(spec, command=dying_with_parent(command), is_waiting_for_input=True)


def main(argv: list[str]) -> None:
    """Import the libraries, wait for the end of the input, then run `manage.py COMMAND`."""
    for name in _LIBRARIES:
        importlib.import_module(name)
    gc.freeze()  # garbage collections of the console need not search the libraries
    sys.stdin.buffer.read()
    sys.argv = [str(REPOSITORY / "manage.py"), *argv[1:]]
    sys.path.insert(0, str(REPOSITORY))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv)
