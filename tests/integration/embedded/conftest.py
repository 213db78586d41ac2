from collections.abc import Iterator

import psycopg
import pytest

from tests.stack.services import Services


@pytest.fixture
def table_of_the_owner(services: Services) -> Iterator[None]:
    """Create a table as the database role `caret_owner`, and drop it after the test."""
    with psycopg.connect(services.owner_database_url, autocommit=True) as owner:
        owner.execute("CREATE TABLE made_by_the_owner (id bigint GENERATED ALWAYS AS IDENTITY)")
        try:
            yield
        finally:
            owner.execute("DROP TABLE made_by_the_owner")
