"""The courier's pending queries: bounded, in fair shares, and dropped if no worker responds."""

from typing import Any, cast

from caret.contracts.retrieval import RetrievalScope, Sealer
from caret.foundation.ids import TenantId
from inference.retrieval.redis_client import MAX_WAIT_S, RetrievalClient
from inference.retrieval.send_queue import OutgoingMessage, SendQueue
from inference.retrieval.snippet_cache import FileKey, SnippetCache
from tests.fakes.clock import FakeClock
from tests.fakes.tenants import ACME, GLOBEX, ROOT_SECRET


class _Redis:
    """Accepts everything, responds with nothing."""

    async def eval(self, *_arguments: object) -> int:
        return 1

    async def lpop(self, *_arguments: object) -> None:
        return None


def _courier(clock: FakeClock, outbox: SendQueue) -> RetrievalClient:
    redis, sealer = cast(Any, _Redis()), Sealer(ROOT_SECRET)
    return RetrievalClient(redis, sealer, memory=SnippetCache(clock), outbox=outbox, clock=clock)


def _errand(number: int, tenant_id: TenantId, *, is_query: bool = True) -> OutgoingMessage:
    place = FileKey(namespace=f"{tenant_id}||0", repository="shop", path=f"{number}.py")
    scope = RetrievalScope(holder="", repository="shop")
    return OutgoingMessage(place, tenant_id, scope, is_query, "text = read()\n")


async def test_one_tenants_questions_displace_nobody_elses() -> None:
    clock = FakeClock()
    outbox = SendQueue(clock)
    courier = _courier(clock, outbox)

    for number in range(1_000):
        outbox.enqueue(_errand(number, GLOBEX if number else ACME))
        await courier.send_pending()

    askers = [each.tenant_id for each in courier._awaited.values()]
    assert (askers.count(ACME), askers.count(GLOBEX)) == (1, 250)


async def test_files_of_a_scope_without_answers_are_due_again() -> None:
    clock = FakeClock()
    outbox = SendQueue(clock)
    courier = _courier(clock, outbox)
    asked, file = _errand(0, ACME), _errand(1, ACME, is_query=False)
    for errand in (asked, file, _errand(1, GLOBEX, is_query=False)):
        outbox.enqueue(errand)
    await courier.send_pending()

    clock.pass_s(MAX_WAIT_S)
    await courier.receive_results()

    assert outbox.is_due(file.key, is_query=False)
    assert [place.namespace for place, _ in courier._sent.items()] == [f"{GLOBEX}||0"]
