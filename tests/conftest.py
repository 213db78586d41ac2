"""Every test's surroundings: a home of this session's own, and real parts started when asked for.

The environment is set while this file is imported, before pytest-django loads the settings, which
read the home's secrets. Nothing is started here: the fixtures below are lazy, and live in
`tests/stack`, one file for each.
"""

import os
import shutil

import django
import pytest
from hypothesis import is_hypothesis_test, settings

from caret.embedded.paths import EmbeddedPaths
from tests.stack.home import make_home
from tests.stack.seed import IS_DEEP, SEED, SEED_VARIABLE

HOME = make_home()

pytest_plugins = ["tests.stack.services", "tests.stack.database", "tests.stack.running"]


# Speed is measured in tests/benchmarks; a busy machine fails no example here.
settings.register_profile("default-suite", deadline=None, derandomize=True)
settings.register_profile("deep-suite", deadline=None, derandomize=False, print_blob=True)
settings.load_profile("deep-suite" if IS_DEEP else "default-suite")


def pytest_report_header() -> list[str]:
    return [f"deep suite: {SEED_VARIABLE}={SEED}"] if IS_DEEP else []


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Add Hypothesis tests to the deep suite, which draws new examples. Put the tests that end
    shared processes last."""
    if IS_DEEP:
        for item in items:
            if is_hypothesis_test(getattr(item, "obj", None)):
                item.add_marker("deep")
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


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
