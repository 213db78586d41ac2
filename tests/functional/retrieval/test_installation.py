"""Retrieval through all real parts: from consent at the REST API to the records of completions.

Retrieval finds snippets in an index of a repository's files. The policy lists the repositories
that a tenant consents to index. The tests of consent share two tenants and build on each other, so
their order matters.
"""

import asyncio
from dataclasses import replace
from typing import Final

import pytest

from tenants.privacy.retrieval_index.embeddings import EmbeddingEngine
from tests.fakes.embeddings import serving_embeddings
from tests.functional.conftest import Installation
from tests.functional.gateway.gateway_stack import Frame, wait_until
from tests.functional.retrieval.conftest import EmbeddingServer
from tests.functional.retrieval.customer import Customer, num_queries_served
from tests.functional.retrieval.samples import IMAGES, INVOICES, SOCKETS
from tests.integration.retrieval.index_harness import TenantIndex, make_index
from tests.stack.services import Services

pytestmark = [pytest.mark.engine, pytest.mark.deep]
_TIMEOUT_S: Final = 180.0
_PAUSE_S: Final = 0.5  # between two requests: the gateway gets the snippets for the next request
_INDEXED_WITHIN_S: Final = 2.5  # the worker polls each second
_REPOSITORY: Final = "shop"


@pytest.fixture(scope="module")
def acme(installation: Installation) -> Customer:
    return Customer(installation, "acme")


@pytest.fixture(scope="module")
def globex(installation: Installation) -> Customer:
    """Return another tenant, which allows indexing of a repository with the same name."""
    return Customer(installation, "globex")


async def test_without_consent_nothing_is_indexed(acme: Customer) -> None:
    assert await acme.num_snippets(_request_in_pay()) == 0

    await asyncio.sleep(_INDEXED_WITHIN_S)
    assert acme.chunks() == []


async def test_a_first_completion_starts_indexing(acme: Customer, globex: Customer) -> None:
    await acme.allow_retrieval(_REPOSITORY)
    await globex.allow_retrieval(_REPOSITORY)  # for test_another_tenant_gets_no_snippets

    assert await acme.num_snippets(_request_in_pay()) == 0

    async def is_indexed() -> bool:
        # Repeated, because the gateway may not have known the policy at the first request.
        await acme.num_snippets(_request_in_pay())
        return len(acme.chunks()) == 2

    assert await wait_until(is_indexed, timeout_s=_TIMEOUT_S), "the two files were not indexed"


async def test_indexed_chunks_are_stored_encrypted(acme: Customer) -> None:
    rows = b"".join(acme.chunks())

    assert rows
    for plain in (b"total_of", b"read_frame", b"pay.py", _REPOSITORY.encode()):
        assert plain not in rows
        assert plain.hex().encode() not in rows  # Postgres writes bytes as hexadecimal digits


async def test_later_completions_include_snippets(acme: Customer) -> None:
    # The gateway does not wait for the first query. It keeps the snippets for later requests.
    assert await acme.num_snippets(_request_in_cart()) == 0

    assert await _gets_snippets(acme)


async def test_another_tenant_gets_no_snippets(
    installation: Installation, globex: Customer
) -> None:
    before = num_queries_served(installation)
    assert await globex.num_snippets(_request_in_cart()) == 0

    async def is_answered() -> bool:
        return num_queries_served(installation) > before

    assert await wait_until(is_answered, timeout_s=_TIMEOUT_S), "the query was never answered"
    await asyncio.sleep(_PAUSE_S)
    assert await globex.num_snippets(_request_in_cart()) == 0


async def test_withdrawing_consent_erases_the_index_immediately(acme: Customer) -> None:
    assert await acme.num_snippets(_request_in_cart()) > 0

    await acme.allow_retrieval()

    assert acme.chunks() == []

    async def gets_no_snippets() -> bool:
        # The gateway learns of the withdrawal a moment later.
        return await acme.num_snippets(_request_in_cart()) == 0

    assert await wait_until(gets_no_snippets, timeout_s=_TIMEOUT_S)


@pytest.fixture
def index(services: Services, database: None, embedding_server: EmbeddingServer) -> TenantIndex:
    # `make_index` accepts only a fake engine, so the engine is replaced afterwards.
    with serving_embeddings() as fake_engine:
        tenant_index = make_index("initech", fake_engine)
    engine = EmbeddingEngine(embedding_server.url, model=embedding_server.model)
    return replace(tenant_index, context=replace(tenant_index.context, embedder=engine))


def test_semantically_similar_files_are_found_first(index: TenantIndex) -> None:
    for path, text in (("net.py", SOCKETS), ("pay.py", INVOICES), ("image.py", IMAGES)):
        index.index_file(path, text)

    money = index.find_snippets("# how much does the shopping cart cost altogether\ndef cart_cost(")
    network = index.find_snippets("# send a packet to the server over tcp\ndef send(sock")

    assert money[0].path == "pay.py"
    assert network[0].path == "net.py"


async def _gets_snippets(customer: Customer) -> bool:
    async def has_snippets() -> bool:
        await asyncio.sleep(_PAUSE_S)
        return await customer.num_snippets(_request_in_cart()) > 0

    return await wait_until(has_snippets, timeout_s=_TIMEOUT_S)


def _request_in_pay() -> Frame:
    """Return a completion request in `pay.py` with `net.py` open beside it."""
    before, after = INVOICES.split("    if invoice.discount")
    return _frame(
        path="pay.py",
        prefix=before,
        suffix=f"    if invoice.discount{after}",
        files=[{"path": "net.py", "text": SOCKETS}],
    )


def _request_in_cart() -> Frame:
    """Return a completion request in `cart.py` with no other file open."""
    prefix = "# what does the customer have to pay for the invoice, taxes included\ndef cost("
    return _frame(path="cart.py", prefix=prefix, suffix="\n", files=[])


def _frame(**fields: object) -> Frame:
    shared = {"id": "1", "mode": "fim", "repository": {"name": _REPOSITORY}, "max_tokens": 4}
    return shared | fields
