"""Every test's surroundings: a home of this session's own, and real parts started when asked for.

The environment is set while this file is imported, before pytest-django loads the settings, which
read the home's secrets. Nothing is started here: the fixtures below are lazy, and live in
`tests/stack`, one file for each.
"""

import os
import shutil

import django
import pytest
from hypothesis import settings

from caret.embedded.paths import EmbeddedPaths
from tests.stack.home import make_home

HOME = make_home()

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
