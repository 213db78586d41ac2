"""Every test's surroundings: a home of this session's own, and real parts started when asked for.

The environment is set while this file is imported, before pytest-django loads the settings, which
read the home's secrets. Nothing is started here: the fixtures below are lazy, and live in
`tests/stack`, one file for each.
"""

import os
import shutil
import tempfile
from pathlib import Path

import django
import pytest
from hypothesis import settings

from caret.embedded.credentials import write_credentials
from caret.embedded.paths import EmbeddedPaths


def _make_home() -> EmbeddedPaths:
    """A fresh CARET_HOME, deaf to whatever the person's shell says about Caret."""
    for name in [name for name in os.environ if name.startswith("CARET_")]:
        del os.environ[name]
    for name in ("DATABASE_URL", "REDIS_URL"):
        os.environ.pop(name, None)
    paths = EmbeddedPaths(Path(tempfile.mkdtemp(prefix="caret-test-")))
    write_credentials(paths)
    os.environ["CARET_HOME"] = str(paths.home)
    os.environ["CARET_OPERATORS_PATH"] = "operators"  # else there are no such pages
    os.environ["DJANGO_SETTINGS_MODULE"] = "caret.settings"
    return paths


HOME = _make_home()

pytest_plugins = ["tests.stack.services", "tests.stack.database", "tests.stack.running"]


# Speed is measured in tests/benchmarks; a busy machine fails no example here.
settings.register_profile("caret", deadline=None)
settings.load_profile("caret")


def pytest_configure() -> None:
    # Earlier than pytest-django would: it looks for the settings before this file is imported.
    django.setup()
    # The processes that share the work would read the settings of this home, not of their own.
    del os.environ["DJANGO_SETTINGS_MODULE"]


def pytest_unconfigure() -> None:
    for folder in (HOME.home, HOME.sockets):
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def embedded_paths() -> EmbeddedPaths:
    return HOME
