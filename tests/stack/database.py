"""The database for tests of the control plane: committed, as the application's role."""

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

# emptying a hundred tables takes as long as iterating over a few more tenants
FEW_TENANTS: Final = 30


@pytest.fixture(scope="module")
def few_tenants(services: Services) -> None:
    """Delete the tenants of earlier modules if there are many.

    Many tasks iterate over all tenants and become slower with each one.
    """
    if services.paths.up_file.exists():
        return  # an installation uses the database, and its tenants are not ours
    with psycopg.connect(
        host=str(services.paths.sockets),
        dbname=DATABASE,
        user=SUPERUSER,  # no other role has the permission
        password=password_of(services.paths, SUPERUSER),
        autocommit=True,
    ) as superuser:
        row = superuser.execute("SELECT count(*) FROM tenants_tenant").fetchone()
        if row is not None and row[0] > FEW_TENANTS:
            superuser.execute("TRUNCATE tenants_tenant CASCADE")


@pytest.fixture(scope="module")
def cast(few_tenants: None, services: Services, django_db_blocker: DjangoDbBlocker) -> Cast:
    """Return the cast for tests that do not change it; other tests make their own company."""
    # Imported here: plugins are loaded before Django is set up, models after it.
    from tests.fixtures.companies import make_cast

    with django_db_blocker.unblock():
        return make_cast()


@pytest.fixture
def database(
    few_tenants: None, services: Services, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    from django.db import connections

    with django_db_blocker.unblock():
        yield
        connections.close_all()
