import pytest


@pytest.fixture(autouse=True)
def _database(database: None) -> None:
    """Give all of these tests Postgres and Valkey."""
