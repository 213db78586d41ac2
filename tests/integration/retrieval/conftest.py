from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fakes.embeddings import FakeEmbeddings
    from tests.integration.retrieval.index_harness import TenantIndex


@pytest.fixture(autouse=True)
def _database(database: None) -> None:
    """Give all tests of this folder Postgres, and Valkey without messages of earlier tests."""
    # Imported here: pytest may load this file before Django is set up.
    from caret.contracts.retrieval import FILES, QUERIES
    from tenants.base.redis_connection import connect_to_redis

    connect_to_redis().delete(FILES, QUERIES)


@pytest.fixture
def embeddings() -> Iterator[FakeEmbeddings]:
    from tests.fakes.embeddings import serving_embeddings

    with serving_embeddings() as fake:
        yield fake


@pytest.fixture
def acme(embeddings: FakeEmbeddings) -> TenantIndex:
    """A tenant that allows indexing of the repository `shop`."""
    from tests.integration.retrieval.index_harness import make_index

    return make_index("acme", embeddings)


@pytest.fixture
def globex(embeddings: FakeEmbeddings) -> TenantIndex:
    """Another tenant, which allows indexing of a repository with the same name."""
    from tests.integration.retrieval.index_harness import make_index

    return make_index("globex", embeddings)
