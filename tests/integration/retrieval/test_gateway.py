"""The retrieval client of the gateway and the worker, with real Redis and Postgres."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from django.conf import settings
from redis.asyncio import Redis
from structlog.testing import capture_logs

from caret.contracts.retrieval import (
    FILES,
    QUERIES,
    RetrievalSealer,
    SnippetMatch,
    SnippetResult,
    build_results_key,
)
from caret.foundation.ids import TenantId
from inference.completion.incoming_request import ContextFile
from inference.completion.request import AdmittedRequest
from inference.retrieval import Retrieval
from inference.retrieval.redis_client import MAX_WAIT_S, RESEND_S
from inference.retrieval.send_queue import FILE_EVERY_S, FIRST_RETRY_PAUSE_S, QUERY_EVERY_S
from tenants.base.redis_connection import connect_to_redis
from tests.fakes.clock import FakeClock
from tests.fakes.embeddings import FakeEmbeddings
from tests.fakes.requests import make_admitted
from tests.fakes.tenants import make_policy, make_principal
from tests.functional.gateway.company import in_thread
from tests.integration.retrieval.index_harness import TenantIndex, make_code

INVOICE = ContextFile("invoices.py", make_code("invoice", "total", "tax"), edited_at=0)
POLICY = make_policy(retrieval=("shop",))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def retrieval(clock: FakeClock) -> AsyncIterator[Retrieval]:
    async with Redis.from_url(settings.REDIS_URL) as redis:
        yield Retrieval(redis, root_secret=settings.ROOT_SECRET, clock=clock)


def make_request(index: TenantIndex, **fields: Any) -> AdmittedRequest:
    principal = make_principal(tenant_id=index.company.tenant_id, policy=POLICY)
    defaults: dict[str, Any] = {
        "repository": "shop",
        "path": "now.py",
        "prefix": "invoice total tax = ",
        "files": (INVOICE,),
    }
    return make_admitted(principal, **{**defaults, **fields})


async def exchange(index: TenantIndex, retrieval: Retrieval) -> None:
    """Run one round of the gateway's client and the worker."""
    await retrieval.client.send_pending()
    await in_thread(index.run_worker)
    await retrieval.client.receive_results()


async def test_the_first_request_starts_retrieval_and_a_later_one_gets_snippets(
    acme: TenantIndex, retrieval: Retrieval, clock: FakeClock
) -> None:
    request = make_request(acme)
    first = retrieval.find(request)
    # The worker answers the query before it indexes the request's files.
    await exchange(acme, retrieval)
    second = retrieval.find(request)
    # A query without snippets is repeated after a pause.
    clock.pass_s(FIRST_RETRY_PAUSE_S)
    third = retrieval.find(request)
    await exchange(acme, retrieval)

    snippets = retrieval.find(request)

    assert first == second == third == ()
    assert [snippet.path for snippet in snippets] == ["invoices.py"]
    assert snippets[0].text == INVOICE.text.rstrip("\n")


async def test_another_tenant_with_the_same_text_gets_no_snippets(
    acme: TenantIndex, globex: TenantIndex, retrieval: Retrieval
) -> None:
    await in_thread(lambda: acme.index_file(INVOICE.path, INVOICE.text))
    for index in (acme, globex):
        retrieval.find(make_request(index, files=()))
    await exchange(acme, retrieval)

    assert retrieval.find(make_request(acme)) != ()
    assert retrieval.find(make_request(globex)) == ()


async def test_queries_are_limited_while_a_user_types(
    acme: TenantIndex, retrieval: Retrieval, embeddings: FakeEmbeddings, clock: FakeClock
) -> None:
    await in_thread(lambda: acme.index_file(INVOICE.path, INVOICE.text))
    retrieval.find(make_request(acme))
    await exchange(acme, retrieval)
    embeddings.texts.clear()

    for number in range(int(QUERY_EVERY_S) - 1):  # until a second before the next query
        clock.pass_s(1.0)
        retrieval.find(make_request(acme, prefix="x" * number))
        await exchange(acme, retrieval)

    assert embeddings.texts == []
    clock.pass_s(1.0)
    retrieval.find(make_request(acme, prefix="invoice"))
    await exchange(acme, retrieval)
    assert embeddings.texts != []


async def test_a_file_is_sent_again_after_a_change_or_a_long_time(
    acme: TenantIndex, retrieval: Retrieval, clock: FakeClock
) -> None:
    async def request_and_count_sent_files(seconds: float, text: str) -> int:
        """Request a completion after these seconds, with a file that has this text."""
        clock.pass_s(seconds)
        retrieval.find(
            make_request(acme, prefix="", files=(ContextFile("b.py", text, edited_at=0),))
        )
        await retrieval.client.send_pending()
        return len(await in_thread(lambda: acme.context.streams.dequeue(FILES, count=9)))

    assert await request_and_count_sent_files(0, "one = 1") == 1
    assert await request_and_count_sent_files(FILE_EVERY_S, "one = 1") == 0
    assert await request_and_count_sent_files(FILE_EVERY_S, "two = 2") == 1
    assert await request_and_count_sent_files(RESEND_S, "two = 2") == 1


async def test_generated_files_are_not_sent(acme: TenantIndex, retrieval: Retrieval) -> None:
    files = (
        ContextFile("package-lock.json", "{}", edited_at=0),
        ContextFile("a.min.js", "x=1", edited_at=0),
    )
    retrieval.find(make_request(acme, prefix="", files=files))

    await retrieval.client.send_pending()

    assert await in_thread(lambda: connect_to_redis().xlen(FILES)) == 0


async def test_secrets_do_not_leave_the_gateway(
    acme: TenantIndex, retrieval: Retrieval, embeddings: FakeEmbeddings
) -> None:
    secret = "AKIA" + "QX7RT2MNV4KLPZ3J"  # in two parts, so that no scanner reports this file
    text = f"{INVOICE.text}\nconnect('{secret}')\n"
    files = (ContextFile("b.py", text, edited_at=0),)
    retrieval.find(make_request(acme, prefix=text, files=files))

    await exchange(acme, retrieval)

    # The query, and at least a chunk each of the current file and of b.py.
    assert len(embeddings.texts) >= 3
    assert not any(secret in text for text in embeddings.texts)


async def test_invalid_unicode_in_texts_is_replaced(
    acme: TenantIndex, retrieval: Retrieval
) -> None:
    files = (ContextFile("b\ud800.py", f"{INVOICE.text}# \ud800\n", edited_at=0),)
    retrieval.find(make_request(acme, path="now\ud800.py", files=files))

    await exchange(acme, retrieval)

    assert await in_thread(acme.indexed_paths) == {"b?.py"}


async def test_a_result_sealed_for_another_tenant_is_ignored(
    acme: TenantIndex, globex: TenantIndex, retrieval: Retrieval
) -> None:
    request = make_request(acme)
    retrieval.find(request)
    await retrieval.client.send_pending()
    (query_id,) = retrieval.client._pending_queries
    await in_thread(lambda: _push_result(globex.company.tenant_id, query_id, retrieval))

    await retrieval.client.receive_results()

    assert retrieval.find(request) == ()


async def test_unreadable_results_are_dropped(acme: TenantIndex, retrieval: Retrieval) -> None:
    retrieval.find(make_request(acme))
    await retrieval.client.send_pending()
    await in_thread(
        lambda: connect_to_redis().rpush(
            build_results_key(retrieval.client._gateway_id), b"garbage"
        )
    )

    with capture_logs() as logs:
        await retrieval.client.receive_results()

    assert [entry["event"] for entry in logs] == ["retrieval.unreadable"]


async def test_a_query_without_a_response_is_repeated(
    acme: TenantIndex, retrieval: Retrieval, clock: FakeClock
) -> None:
    request = make_request(acme)
    retrieval.find(request)
    await retrieval.client.send_pending()
    clock.pass_s(MAX_WAIT_S)
    await retrieval.client.receive_results()
    clock.pass_s(FIRST_RETRY_PAUSE_S)

    retrieval.find(request)
    await retrieval.client.send_pending()

    assert await in_thread(lambda: connect_to_redis().xlen(QUERIES)) == 2


async def test_files_are_sent_again_if_no_response_arrives(
    acme: TenantIndex, retrieval: Retrieval, clock: FakeClock
) -> None:
    request = make_request(acme)
    retrieval.find(request)
    await retrieval.client.send_pending()
    # As if the messages had expired before a worker ran.
    await in_thread(lambda: connect_to_redis().delete(FILES, QUERIES))
    clock.pass_s(MAX_WAIT_S)
    await retrieval.client.receive_results()

    retrieval.find(request)
    await exchange(acme, retrieval)

    assert await in_thread(acme.indexed_paths) == {"invoices.py"}


async def test_an_unreachable_redis_delays_no_request_and_queues_nothing(
    acme: TenantIndex, clock: FakeClock
) -> None:
    request = make_request(acme)
    async with Redis.from_url("redis://127.0.0.1:9") as unreachable:  # nothing listens there
        retrieval = Retrieval(unreachable, root_secret=settings.ROOT_SECRET, clock=clock)
        with capture_logs() as logs:
            running = asyncio.create_task(retrieval.client.run())
            snippets = [retrieval.find(request) for _ in range(3)]
            await _wait_until(lambda: bool(logs))
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    assert snippets == [()] * 3
    assert {entry["event"] for entry in logs} == {"retrieval.unreachable"}
    assert retrieval.client._queue.dequeue() is None


async def test_the_client_delivers_results_in_the_background(
    acme: TenantIndex, retrieval: Retrieval
) -> None:
    await in_thread(lambda: acme.index_file(INVOICE.path, INVOICE.text))
    request = make_request(acme, files=())
    running = asyncio.create_task(retrieval.client.run())
    retrieval.find(request)
    await _wait_until(lambda: bool(retrieval.client._pending_queries))
    await in_thread(acme.run_worker)

    await _wait_until(lambda: retrieval.find(request) != ())

    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


def _push_result(tenant_id: TenantId, query_id: str, retrieval: Retrieval) -> None:
    result = SnippetResult(query_id, (SnippetMatch("theirs.py", "theirs", 0.9),))
    sealed = RetrievalSealer(settings.ROOT_SECRET).seal(tenant_id, result)
    connect_to_redis().rpush(build_results_key(retrieval.client._gateway_id), sealed)


async def _wait_until(condition: Any) -> None:
    deadline_s = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < deadline_s
        await asyncio.sleep(0.01)
