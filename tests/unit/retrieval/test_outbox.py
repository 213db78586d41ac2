"""The outbox is bounded, and ordered by the requests that wait for its messages."""

import asyncio

import pytest

from caret.contracts.retrieval import RetrievalScope
from caret.foundation.ids import TenantId
from inference.retrieval.send_queue import (
    FILE_EVERY_S,
    FIRST_EMPTY_S,
    MAX_FILES,
    MAX_OF_TENANT,
    MAX_QUESTIONS,
    QUESTION_EVERY_S,
    OutgoingMessage,
    SendQueue,
)
from inference.retrieval.snippet_cache import FileKey
from tests.fakes.clock import FakeClock
from tests.fakes.tenants import ACME, GLOBEX


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def outbox(clock: FakeClock) -> SendQueue:
    return SendQueue(clock)


def errand(path: str, *, tenant_id: TenantId = ACME, is_query: bool = False) -> OutgoingMessage:
    return OutgoingMessage(
        key=FileKey(namespace=tenant_id, repository="shop", path=path),
        tenant_id=tenant_id,
        scope=RetrievalScope(holder="", repository="shop"),
        is_query=is_query,
        text="text",
    )


def taken(outbox: SendQueue) -> list[OutgoingMessage]:
    found = []
    while (each := outbox.dequeue()) is not None:
        found.append(each)
    return found


def test_questions_are_taken_before_files(outbox: SendQueue) -> None:
    file, question = errand("a.py"), errand("b.py", is_query=True)
    outbox.enqueue(file)
    outbox.enqueue(question)

    assert taken(outbox) == [question, file]


@pytest.mark.parametrize(("is_query", "every_s"), [(True, QUESTION_EVERY_S), (False, FILE_EVERY_S)])
def test_what_was_put_is_due_again_later(
    outbox: SendQueue, clock: FakeClock, is_query: bool, every_s: float
) -> None:
    each = errand("a.py", is_query=is_query)
    before = outbox.is_due(each.key, is_query=is_query)
    outbox.enqueue(each)

    clock.pass_s(every_s - 1)
    meanwhile = outbox.is_due(each.key, is_query=is_query)
    clock.pass_s(1)

    assert before
    assert not meanwhile
    assert outbox.is_due(each.key, is_query=is_query)
    assert outbox.is_due(each.key, is_query=not is_query)


@pytest.mark.parametrize(("is_query", "limit"), [(True, MAX_QUESTIONS), (False, MAX_FILES)])
def test_one_tenant_leaves_room_for_the_others(
    outbox: SendQueue, is_query: bool, limit: int
) -> None:
    for number in range(limit):
        outbox.enqueue(errand(f"{number}.py", is_query=is_query))
    neighbour = errand("a.py", tenant_id=GLOBEX, is_query=is_query)
    outbox.enqueue(neighbour)

    found = taken(outbox)

    assert len(found) == limit // MAX_OF_TENANT + 1
    assert found[-1] == neighbour


def test_there_is_an_end_to_it(outbox: SendQueue) -> None:
    for number in range(MAX_FILES + 10):
        outbox.enqueue(errand("a.py", tenant_id=TenantId(str(number))))

    assert len(taken(outbox)) == MAX_FILES


def test_what_found_no_room_is_still_due(outbox: SendQueue) -> None:
    errands = [errand(f"{number}.py") for number in range(MAX_FILES)]
    for each in errands:
        outbox.enqueue(each)

    due = [each for each in errands if outbox.is_due(each.key, is_query=False)]

    assert due == errands[MAX_FILES // MAX_OF_TENANT :]


def test_room_is_there_again_once_it_is_taken(outbox: SendQueue) -> None:
    for _ in range(3):
        for number in range(MAX_FILES // MAX_OF_TENANT):
            outbox.enqueue(errand(f"{number}.py"))

        assert len(taken(outbox)) == MAX_FILES // MAX_OF_TENANT


def test_what_was_cleared_is_gone_and_due(outbox: SendQueue) -> None:
    outbox.enqueue(errand("a.py"))
    outbox.clear()

    assert taken(outbox) == []
    assert outbox.is_due(errand("a.py").key, is_query=False)


async def test_it_wakes_who_waits(outbox: SendQueue) -> None:
    waiting = asyncio.create_task(outbox.wait_for_message(timeout_s=60.0))
    await asyncio.sleep(0)

    outbox.enqueue(errand("a.py"))

    await asyncio.wait_for(waiting, timeout=5.0)


async def test_it_lets_wait_who_has_taken_all(outbox: SendQueue) -> None:
    outbox.enqueue(errand("a.py"))
    taken(outbox)

    waiting = asyncio.create_task(outbox.wait_for_message(timeout_s=60.0))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert not waiting.done()
    waiting.cancel()


def test_who_finds_nothing_asks_less_and_less(outbox: SendQueue, clock: FakeClock) -> None:
    question = errand("a.py", is_query=True)
    pauses = []
    for _ in range(7):
        outbox.enqueue(question)
        outbox.dequeue()
        outbox.schedule_retry(question.key)
        pauses.append(0)
        while not outbox.is_due(question.key, is_query=True):
            clock.pass_s(1)
            pauses[-1] += 1

    assert pauses == [FIRST_EMPTY_S, 6, 12, 24, 48, QUESTION_EVERY_S, QUESTION_EVERY_S]
