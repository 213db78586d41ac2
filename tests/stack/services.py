"""Postgres and Valkey, migrated, shared by the whole session.

Django's connections are those of production: `default` is the weak role `caret_app`. There is no
separate test database, because that role may not create one. A test that commits makes its own
tenant with a random slug. Nothing is deleted between the tests of a module.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING

import pytest

from caret.local.paths import EmbeddedPaths
from caret.local.postgres import EmbeddedPostgres
from caret.local.process_tag import environment_with, new_tag
from caret.local.valkey import EmbeddedValkey
from caret.local.watchdog import Watchdog

if TYPE_CHECKING:
    from pytest_django import DjangoDbBlocker


@dataclass(frozen=True, slots=True)
class Services:
    paths: EmbeddedPaths
    database_url: str  # role caret_app
    owner_database_url: str  # role caret_owner
    redis_url: str
    mark: dict[str, str]  # in a process's environment: the process ends with this session


@contextmanager
def running_services(paths: EmbeddedPaths) -> Iterator[Services]:
    """Run the services of a home for which Django has been set up; `migrate` makes the tables."""
    # Not the tag of the home: a supervisor started there would kill its processes as leftovers.
    mark = new_tag(paths.home / "services")
    marked = environment_with(mark)
    with (
        Watchdog(mark),  # a killed session leaves no servers behind
        EmbeddedPostgres(paths, mark=marked),
        EmbeddedValkey(paths, mark=marked),
    ):
        yield Services(
            paths=paths,
            database_url=paths.app_database_url.read_text().strip(),
            owner_database_url=paths.owner_database_url.read_text().strip(),
            redis_url=paths.redis_url.read_text().strip(),
            mark=marked,
        )


def migrate(paths: EmbeddedPaths) -> None:
    # Imported here: pytest loads this file for all tests, and most do not need Django.
    from django.core.management import call_command

    _require_own_database(paths)
    call_command("migrate", database="owner", verbosity=0)
    call_command("create_partitions", stdout=StringIO())


@pytest.fixture(scope="session")
def services(
    embedded_paths: EmbeddedPaths, django_db_blocker: DjangoDbBlocker
) -> Iterator[Services]:
    with running_services(embedded_paths) as running:
        with django_db_blocker.unblock():
            migrate(embedded_paths)
        yield running


def _require_own_database(paths: EmbeddedPaths) -> None:
    """Check that the settings are those of this home.

    If DJANGO_SETTINGS_MODULE is set in the user's shell, pytest-django reads the settings before
    the environment is set. Tests would then write to the user's database.
    """
    from django.conf import settings

    assert settings.DATABASES["default"]["HOST"] == str(paths.sockets), (
        "unset DJANGO_SETTINGS_MODULE"
    )


@pytest.fixture(scope="session")
def django_db_setup(services: Services) -> None:
    """Replace pytest-django's fixture, which would create a test database."""
