import pytest


@pytest.fixture(autouse=True)
def _database(database: None) -> None:
    """All of these tests reach Postgres and Valkey."""
