"""The retrieval client limits the pending queries of each tenant, and drops unanswered queries."""

from typing import Any, cast

import pytest

from caret.contracts.retrieval import RetrievalScope, RetrievalSealer, SnippetMatch, SnippetResult
from caret.foundation.ids import TenantId
from inference.retrieval.redis_client import MAX_WAIT_S, RetrievalClient
from inference.retrieval.send_queue import OutgoingMessage, SendQueue
from inference.retrieval.snippet_cache import FileKey, SnippetCache
from tests.fakes.clock import FakeClock
from tests.fakes.tenants import ACME, GLOBEX, ROOT_SECRET, make_policy


class _Redis:
    """Accepts everything, responds with nothing."""

    async def eval(self, *_arguments: object) -> int:
        return 1

    async def lpop(self, *_arguments: object) -> None:
        return None


def _create_client(
    clock: FakeClock, queue: SendQueue, cache: SnippetCache | None = None
) -> RetrievalClient:
    redis, sealer = cast(Any, _Redis()), RetrievalSealer(ROOT_SECRET)
    cache = cache or SnippetCache(clock)
    return RetrievalClient(redis, sealer, cache=cache, queue=queue, clock=clock)


def _message(number: int, tenant_id: TenantId, *, is_query: bool = True) -> OutgoingMessage:
    key = FileKey(namespace=f"{tenant_id}||0", repository="shop", path=f"{number}.py")
    scope = RetrievalScope(holder="", repository="shop")
    return OutgoingMessage(key, tenant_id, scope, is_query, "text = read()\n")


async def test_queries_of_a_tenant_do_not_evict_queries_of_another_tenant() -> None:
    clock = FakeClock()
    queue = SendQueue(clock)
    client = _create_client(clock, queue)

    for number in range(1_000):
        queue.enqueue(_message(number, GLOBEX if number else ACME))
        await client.send_pending()

    tenants = [query.tenant_id for query in client._pending_queries.values()]
    # One tenant may have a quarter of the 1,000 pending queries.
    assert (tenants.count(ACME), tenants.count(GLOBEX)) == (1, 250)


async def test_files_are_sent_again_after_a_query_without_a_response() -> None:
    clock = FakeClock()
    queue = SendQueue(clock)
    client = _create_client(clock, queue)
    query, file = _message(0, ACME), _message(1, ACME, is_query=False)
    for message in (query, file, _message(1, GLOBEX, is_query=False)):
        queue.enqueue(message)
    await client.send_pending()

    clock.pass_s(MAX_WAIT_S)
    await client.receive_results()

    assert queue.is_due(file.key, is_query=False)
    # Globex has sent no query, so its file is not sent again.
    assert [key.namespace for key, _ in client._last_uploads.items()] == [f"{GLOBEX}||0"]


@pytest.mark.parametrize(("tenant", "num_snippets"), [(ACME, 1), (GLOBEX, 0)])
async def test_a_result_counts_only_for_the_tenant_that_sent_the_query(
    tenant: TenantId, num_snippets: int
) -> None:
    clock = FakeClock()
    queue, cache = SendQueue(clock), SnippetCache(clock)
    client = _create_client(clock, queue, cache)
    query = _message(0, ACME)
    queue.enqueue(query)
    await client.send_pending()
    (query_id,) = client._pending_queries
    result = SnippetResult(query_id, (SnippetMatch("lib.py", "def lib(): ...\n", 0.9),))

    client._on_result(RetrievalSealer(ROOT_SECRET).seal(tenant, result))

    assert len(cache.find(query.key, make_policy(retrieval=("*",)))) == num_snippets
