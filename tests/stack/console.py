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

_START_S = 90.0  # on two cores that other processes use too


@contextmanager
def console(services: Services, **settings: str) -> Iterator[int]:
    """Start a console with `settings` and return the port on which it listens."""
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
        stderr=subprocess.PIPE,
    )
    try:
        wait_until(lambda: _is_healthy(port), timeout_s=_START_S)
        yield port
    finally:
        process.terminate()
        process.communicate(timeout=20)


def _is_healthy(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
