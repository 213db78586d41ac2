"""`manage.py up` and `down` as a user runs them: real processes, observed from outside."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from caret.local.paths import REPOSITORY

# A cold start on two busy cores. The engine alone takes 16-35 s.
UP_TIMEOUT_S = 540.0  # less than the time limit of a test


def environment_for(home: Path, *, ports: list[int]) -> dict[str, str]:
    """Return the settings of an installation in `home`, without those of the test session.

    `ports` are those of the console, the gateway and the engine, in this order.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("CARET_") and name != "DJANGO_SETTINGS_MODULE"
    }
    console, gateway, engine = map(str, ports)
    return inherited | {
        "CARET_HOME": str(home),
        "CARET_CONSOLE_PORT": console,
        "CARET_GATEWAY_PORT": gateway,
        "CARET_ENGINE_PORT": engine,
        "CARET_ENGINES": "1",  # a second engine would only cost time
        "CARET_METRICS_PORT": "0",  # no metrics page
    }


def manage(
    *arguments: str, environment: Mapping[str, str], timeout_s: float = UP_TIMEOUT_S
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(REPOSITORY / "manage.py"), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=dict(environment),
        timeout=timeout_s,
        check=False,
    )
