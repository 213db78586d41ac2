"""The database, as tests of the control plane use it: committed, as the application's role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import psycopg
import pytest

from caret.local.credentials import DATABASE, SUPERUSER, password_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import DjangoDbBlocker

    from tests.fixtures.companies import Cast
    from tests.stack.services import Services

FEW_TENANTS: Final = 30  # emptying a hundred tables takes as long as seeing to more


@pytest.fixture(scope="module")
def few_tenants(services: Services) -> None:
    """What sees to all tenants, as many tasks do, takes longer with each that a test has made: so a
    module begins with few."""
    if services.paths.up_file.exists():
        return  # an installation uses it, and its tenants are not ours
    with psycopg.connect(
        host=str(services.paths.sockets),
        dbname=DATABASE,
        user=SUPERUSER,  # nobody else may
        password=password_of(services.paths, SUPERUSER),
        autocommit=True,
    ) as superuser:
        row = superuser.execute("SELECT count(*) FROM tenants_tenant").fetchone()
        if row is not None and row[0] > FEW_TENANTS:
            superuser.execute("TRUNCATE tenants_tenant CASCADE")


@pytest.fixture(scope="module")
def cast(few_tenants: None, services: Services, django_db_blocker: DjangoDbBlocker) -> Cast:
    """For tests that leave it as it is; the others make a company of their own."""
    # Imported here: plugins are loaded before Django is set up, models after.
    from tests.fixtures.companies import make_cast

    with django_db_blocker.unblock():
        return make_cast()


@pytest.fixture
def database(
    few_tenants: None, services: Services, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    with django_db_blocker.unblock():
        yield
        _clean_connections()


def _clean_connections() -> None:
    """Keep the application's connection for the next test, unless it is in use or broken.

    A new connection reads the catalog of all tables again, which takes longer than most tests.
    Tests change the settings of the owner's connection, so that one is closed.
    """
    from django.db import DEFAULT_DB_ALIAS, connections

    for connection in connections.all(initialized_only=True):
        if connection.alias != DEFAULT_DB_ALIAS or connection.in_atomic_block:
            connection.close()
        else:
            connection.close_if_unusable_or_obsolete()  # the next query checks its health
