"""`manage.py console` in its own process, with the session's Postgres and Valkey."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection

from caret.local.paths import REPOSITORY
from tests.stack.ports import free_port
from tests.stack.services import Services
from tests.stack.waiting import wait_until

_START_S = 300.0  # on two cores that other processes use too


@contextmanager
def console(services: Services, **settings: str) -> Iterator[int]:
    """Run a console with `settings`, and yield the port on which it listens."""
    own_settings = {
        "CARET_CONSOLE_PORT": str(free_port()),
        "CARET_CONSOLE_HOST": "127.0.0.1",
        **settings,
    }
    port = int(own_settings["CARET_CONSOLE_PORT"])
    process = subprocess.Popen(
        [sys.executable, "manage.py", "console"],
        cwd=REPOSITORY,
        env={**os.environ, **services.process_mark, **own_settings},
    )
    try:
        wait_until(lambda: process.poll() is not None or _is_healthy(port), timeout_s=_START_S)
        assert process.poll() is None, "the console has ended"
        yield port
    finally:
        process.terminate()
        process.wait(timeout=120)


def _is_healthy(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
