"""The database, as tests of the control plane use it: committed, as the application's role."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connections

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import DjangoDbBlocker

    from tests.cast import Cast
    from tests.stack.services import Services


@pytest.fixture(scope="session")
def cast(services: Services, django_db_blocker: DjangoDbBlocker) -> Cast:
    """For tests that leave it as it is; the others make a company of their own."""
    # Imported here: plugins are loaded before Django is set up, models after.
    from tests.cast import make_cast

    with django_db_blocker.unblock():
        return make_cast()


@pytest.fixture
def database(services: Services, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with django_db_blocker.unblock():
        yield
        connections.close_all()
