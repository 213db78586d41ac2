"""The environment of every test: a home folder of this session, and services started on demand.

The environment is set while this file is imported, before Django loads the settings, which read the
home's secrets. Nothing is started here: the fixtures are lazy, and each has its own file in
`tests/stack`. Django is set up only for folders whose conftest.py uses `tests.stack.django_setup`.
"""

import gc
import os
import shutil
import sys

import pytest
from hypothesis import is_hypothesis_test, settings

from caret.local.paths import EmbeddedPaths
from tests.stack.home import make_home
from tests.stack.seed import IS_DEEP, SEED, SEED_VARIABLE

# Imports and collection create hundreds of thousands of objects that live to the end of the run.
# Searching them for garbage again and again took a tenth of the tests' CPU time.
gc.disable()

try:
    HOME = make_home()
except OSError as error:
    # Not an exception, whose traceback pytest would print.
    sys.exit(f"The tests need a folder for temporary files (TMPDIR): {error}")
# make_home has just set this variable. With it, pytest-django would set up Django for every test.
del os.environ["DJANGO_SETTINGS_MODULE"]

pytest_plugins = ["tests.stack.services", "tests.stack.database", "tests.stack.running"]


# No deadline: an example must not fail only because the machine is busy. tests/benchmarks measures
# speed.
settings.register_profile("default-suite", deadline=None, derandomize=True, max_examples=25)
settings.register_profile(
    "deep-suite", deadline=None, derandomize=False, print_blob=True, max_examples=300
)
settings.load_profile("deep-suite" if IS_DEEP else "default-suite")


def pytest_report_header() -> list[str]:
    return [f"deep suite: {SEED_VARIABLE}={SEED}"] if IS_DEEP else []


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Add Hypothesis tests to the deep suite, which draws new examples.

    Also put tests with the marker `last` at the end: they end processes that other tests share.
    """
    if IS_DEEP:
        for item in items:
            if is_hypothesis_test(getattr(item, "obj", None)):
                item.add_marker("deep")
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


def pytest_collection_finish() -> None:
    gc.freeze()  # never search the objects that exist now
    gc.enable()
    gc.set_threshold(50_000, 20, 50)  # searches less often than by default (700, 10, 10)


def pytest_unconfigure() -> None:
    for folder in (HOME.home, HOME.sockets):
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def embedded_paths() -> EmbeddedPaths:
    return HOME
