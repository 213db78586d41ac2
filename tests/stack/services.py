"""Postgres and Valkey, migrated, shared by the whole session.

Django connects as in production: `default` is the weak role `caret_app`, which may not create a
test database. A test that commits makes its own tenant with a random slug. Nothing is deleted
between the tests of a module.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Final

import pytest

from caret.local.databases.postgres import EmbeddedPostgres
from caret.local.databases.valkey import EmbeddedValkey
from caret.local.paths import EmbeddedPaths
from caret.local.processes.process_tag import new_tag, tag_environment
from caret.local.processes.watchdog import Watchdog
from tests.stack.home import HOME_TEMPLATE_VARIABLE

if TYPE_CHECKING:
    from pytest_django import DjangoDbBlocker

# These settings save time: waiting until a commit is on the disk takes longer than most tests. Data
# are lost only if the machine loses power, not if the server is killed.
_NOT_DURABLE: Final = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@dataclass(frozen=True, slots=True)
class Services:
    paths: EmbeddedPaths
    database_url: str  # role caret_app
    owner_database_url: str  # role caret_owner
    redis_url: str
    # Environment variables with the process tag of this session. Processes that have these
    # variables are killed at the end of the session.
    process_mark: dict[str, str]


@contextmanager
def running_services(paths: EmbeddedPaths) -> Iterator[Services]:
    """Start the services of a home for which Django is set up. `migrate` creates the tables."""
    # The tag differs from the home's: a supervisor that starts in this home ends all processes with
    # the home's tag, as leftovers of an earlier run.
    tag = new_tag(paths.home / "services")
    process_mark = tag_environment(tag)
    with (
        Watchdog(tag),  # a session that is killed leaves no servers behind
        EmbeddedPostgres(paths, tag_environment=process_mark, settings=_NOT_DURABLE),
        EmbeddedValkey(paths, tag_environment=process_mark),
    ):
        yield Services(
            paths=paths,
            database_url=paths.app_database_url.read_text().strip(),
            owner_database_url=paths.owner_database_url.read_text().strip(),
            redis_url=paths.redis_url.read_text().strip(),
            process_mark=process_mark,
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
        if HOME_TEMPLATE_VARIABLE not in os.environ:  # otherwise the home has a migrated database
            with django_db_blocker.unblock():
                migrate(embedded_paths)
        yield running


def _require_own_database(paths: EmbeddedPaths) -> None:
    """Check that the tests do not write into a developer's database.

    If the shell sets DJANGO_SETTINGS_MODULE, pytest-django reads the settings before
    tests/conftest.py sets the environment.
    """
    from django.conf import settings

    assert settings.DATABASES["default"]["HOST"] == str(paths.sockets), (
        "unset DJANGO_SETTINGS_MODULE"
    )


@pytest.fixture(scope="session")
def django_db_setup(services: Services) -> None:
    """Replace pytest-django's fixture, which would create a test database."""
