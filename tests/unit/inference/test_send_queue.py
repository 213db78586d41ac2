"""The queue of files and queries to send for retrieval: its order, its limits and repetition."""

import asyncio

import pytest

from caret.contracts.retrieval import RetrievalScope
from caret.foundation.ids import TenantId
from inference.retrieval.send_queue import (
    FILE_EVERY_S,
    FIRST_RETRY_PAUSE_S,
    MAX_FILES,
    MAX_QUERIES,
    MAX_TENANT_SHARE,
    QUERY_EVERY_S,
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
def queue(clock: FakeClock) -> SendQueue:
    return SendQueue(clock)


def message(path: str, *, tenant_id: TenantId = ACME, is_query: bool = False) -> OutgoingMessage:
    return OutgoingMessage(
        key=FileKey(namespace=tenant_id, repository="shop", path=path),
        tenant_id=tenant_id,
        scope=RetrievalScope(holder="", repository="shop"),
        is_query=is_query,
        text="text",
    )


def dequeue_all(queue: SendQueue) -> list[OutgoingMessage]:
    messages = []
    while (next_message := queue.dequeue()) is not None:
        messages.append(next_message)
    return messages


def test_queries_are_sent_before_files(queue: SendQueue) -> None:
    file, query = message("a.py"), message("b.py", is_query=True)
    queue.enqueue(file)
    queue.enqueue(query)

    assert dequeue_all(queue) == [query, file]


@pytest.mark.parametrize(("is_query", "every_s"), [(True, QUERY_EVERY_S), (False, FILE_EVERY_S)])
def test_a_sent_message_is_due_again_later(
    queue: SendQueue, clock: FakeClock, is_query: bool, every_s: float
) -> None:
    sent_message = message("a.py", is_query=is_query)
    was_due_before = queue.is_due(sent_message.key, is_query=is_query)
    queue.enqueue(sent_message)

    clock.pass_s(every_s - 1)
    was_due_early = queue.is_due(sent_message.key, is_query=is_query)
    clock.pass_s(1)

    assert was_due_before
    assert not was_due_early
    assert queue.is_due(sent_message.key, is_query=is_query)
    # A file and the query for it have separate times.
    assert queue.is_due(sent_message.key, is_query=not is_query)


@pytest.mark.parametrize(("is_query", "limit"), [(True, MAX_QUERIES), (False, MAX_FILES)])
def test_a_tenant_leaves_room_for_others(queue: SendQueue, is_query: bool, limit: int) -> None:
    for number in range(limit):
        queue.enqueue(message(f"{number}.py", is_query=is_query))
    neighbour = message("a.py", tenant_id=GLOBEX, is_query=is_query)
    queue.enqueue(neighbour)

    messages = dequeue_all(queue)

    assert len(messages) == int(limit * MAX_TENANT_SHARE) + 1
    assert messages[-1] == neighbour


def test_the_size_of_the_queue_is_limited(queue: SendQueue) -> None:
    for number in range(MAX_FILES + 10):
        queue.enqueue(message("a.py", tenant_id=TenantId(str(number))))

    assert len(dequeue_all(queue)) == MAX_FILES


def test_a_message_that_did_not_fit_into_the_queue_is_still_due(queue: SendQueue) -> None:
    files = [message(f"{number}.py") for number in range(MAX_FILES)]
    for file in files:
        queue.enqueue(file)

    due_files = [file for file in files if queue.is_due(file.key, is_query=False)]

    assert due_files == files[int(MAX_FILES * MAX_TENANT_SHARE) :]


def test_there_is_room_again_after_sending(queue: SendQueue) -> None:
    for _ in range(3):
        for number in range(int(MAX_FILES * MAX_TENANT_SHARE)):
            queue.enqueue(message(f"{number}.py"))

        assert len(dequeue_all(queue)) == int(MAX_FILES * MAX_TENANT_SHARE)


def test_cleared_messages_are_due_again(queue: SendQueue) -> None:
    queue.enqueue(message("a.py"))
    queue.clear()

    assert dequeue_all(queue) == []
    assert queue.is_due(message("a.py").key, is_query=False)


async def test_a_new_message_wakes_the_waiting_task(queue: SendQueue) -> None:
    task = asyncio.create_task(queue.wait_for_message(timeout_s=60.0))
    await asyncio.sleep(0)

    queue.enqueue(message("a.py"))

    await asyncio.wait_for(task, timeout=5.0)


async def test_an_empty_queue_waits(queue: SendQueue) -> None:
    queue.enqueue(message("a.py"))
    dequeue_all(queue)

    task = asyncio.create_task(queue.wait_for_message(timeout_s=60.0))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert not task.done()
    task.cancel()


def test_queries_without_results_are_repeated_less_often(
    queue: SendQueue, clock: FakeClock
) -> None:
    query = message("a.py", is_query=True)
    pauses = []
    for _ in range(7):
        queue.enqueue(query)
        queue.dequeue()
        queue.schedule_retry(query.key)
        pauses.append(0)
        while not queue.is_due(query.key, is_query=True):
            clock.pass_s(1)
            pauses[-1] += 1

    doubled_pauses = [FIRST_RETRY_PAUSE_S * 2**number for number in range(5)]
    assert pauses == [*doubled_pauses, QUERY_EVERY_S, QUERY_EVERY_S]
