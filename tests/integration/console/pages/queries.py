"""Count the database queries of a page, for tests that limit them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import connection
from django.test.utils import CaptureQueriesContext

# A page may make at most this many queries of tables. One of them is for the banner of a stopped
# tenant, and one for the second factor that the policy may require.
MAX_QUERIES: Final = 13
# Statements that open and end transactions and scopes read no table.
_SCOPE_STATEMENTS: Final = (
    "SELECT set_config",
    "SAVEPOINT",
    "RELEASE SAVEPOINT",
    "BEGIN",
    "COMMIT",
)


@contextmanager
def few_queries(at_most: int = MAX_QUERIES) -> Iterator[None]:
    """Fail if the block queries tables more than `at_most` times."""
    with CaptureQueriesContext(connection) as captured:
        yield
    queries = table_queries(captured)
    assert len(queries) <= at_most, "\n".join(queries)


def table_queries(captured: CaptureQueriesContext) -> list[str]:
    return [query["sql"] for query in captured if not query["sql"].startswith(_SCOPE_STATEMENTS)]
