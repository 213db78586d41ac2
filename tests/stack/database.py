"""The database for tests of the control plane, which commit as the application's role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import psycopg
import pytest

from caret.local.databases.credentials import DATABASE, SUPERUSER, read_password

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import DjangoDbBlocker

    from tests.fixtures.companies import Cast
    from tests.stack.services import Services

FEW_TENANTS: Final = 30  # truncating a hundred tables takes as long as visiting this many tenants


@pytest.fixture(scope="module")
def few_tenants(services: Services) -> None:
    """Delete the tenants of earlier modules when there are many.

    Otherwise, tasks that visit each tenant would take longer and longer.
    """
    if services.paths.up_file.exists():
        return  # a running installation has tenants in this database
    with psycopg.connect(
        host=str(services.paths.sockets),
        dbname=DATABASE,
        user=SUPERUSER,  # only this role may truncate the tables
        password=read_password(services.paths, SUPERUSER),
        autocommit=True,
    ) as superuser:
        row = superuser.execute("SELECT count(*) FROM tenants_tenant").fetchone()
        if row is not None and row[0] > FEW_TENANTS:
            superuser.execute("TRUNCATE tenants_tenant CASCADE")


@pytest.fixture(scope="module")
def cast(few_tenants: None, services: Services, django_db_blocker: DjangoDbBlocker) -> Cast:
    """Two companies for tests that only read. Other tests make their own company."""
    # Imported here, because pytest loads this module before Django is set up.
    from tests.fixtures.companies import make_cast

    with django_db_blocker.unblock():
        return make_cast()


@pytest.fixture
def database(
    few_tenants: None, services: Services, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """Allow a test to use the database. Without this fixture, pytest-django forbids it."""
    with django_db_blocker.unblock():
        yield
        _clean_connections()


def _clean_connections() -> None:
    """Keep the application's connection for the next test, unless it is in use or broken.

    A new connection reads the catalog of all tables again, which takes longer than most tests.
    Tests change the settings of the owner's connection, so the owner's connection is closed.
    """
    from django.db import DEFAULT_DB_ALIAS, connections

    for connection in connections.all(initialized_only=True):
        if connection.alias != DEFAULT_DB_ALIAS or connection.in_atomic_block:
            connection.close()
        else:
            # This also makes the connection's next query check whether the connection still works.
            connection.close_if_unusable_or_obsolete()
