"""Warm-ups: when they start, in which order they run, and what remains when they end."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from caret.contracts.policy import Mode
from caret.contracts.usage import FinishReason
from caret.foundation.ids import TenantId
from inference.completion.incoming_request import ChatMessage, ContextFile, IncomingRequest
from inference.errors import CompletionDropped, EngineError
from inference.pipeline import serve, warm_up
from inference.prefix_cache import warmup
from inference.prefix_cache.warmup import (
    MAX_AGE_S,
    MAX_AT_ONCE,
    MAX_OF_TENANT,
    MAX_TRIES,
    MAX_WAITING,
    MIN_TOKENS,
    REMEMBERED_S,
    WarmupQueue,
)
from tests.fakes.client import FakeClient
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.gateway import KEY, FakeGateway
from tests.fakes.polling import wait_until
from tests.fakes.requests import make_admitted, make_arrival
from tests.fakes.tenants import ACME, GLOBEX, make_principal

OTHER_FILE = ContextFile("b.py", "def area(self):\n    return 1\n" * 40, edited_at=0.0)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a shed warm-up be tried again at once."""
    monkeypatch.setattr(warmup, "PAUSE_S", 0.0)


class FakePipeline:
    """Records the requests. Raises the given errors first; then succeeds, or hangs if told to."""

    def __init__(self, *, errors: Sequence[Exception] = ()) -> None:
        self.arrivals: list[IncomingRequest] = []
        self._errors = iter(errors)
        self.hangs = False

    async def __call__(self, arrival: IncomingRequest) -> None:
        self.arrivals.append(arrival)
        if error := next(self._errors, None):
            raise error
        if self.hangs:
            await asyncio.Event().wait()


@asynccontextmanager
async def _running(warmup_queue: WarmupQueue, pipeline: Any) -> AsyncIterator[None]:
    running = asyncio.create_task(warmup_queue.run(pipeline))
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _wait_for_end(warmup_queue: WarmupQueue, count: int = 1) -> dict[str, int]:
    """Wait until `count` warm-ups have ended. Return how many ended with each result."""
    await wait_until(lambda: warmup_queue.num_ended.total() >= count)
    return dict(warmup_queue.num_ended)


async def test_an_opened_file_is_warmed_up() -> None:
    warmup_queue, pipeline = WarmupQueue(FakeClock()), FakePipeline()

    async with _running(warmup_queue, pipeline):
        warmup_queue.add_warmup(ACME, make_arrival(path="a.py"))
        num_ended = await _wait_for_end(warmup_queue)

    assert num_ended == {"warmed": 1}
    assert [arrival.draft.path for arrival in pipeline.arrivals] == ["a.py"]


async def test_the_newest_warm_up_of_a_tenant_evicts_its_oldest() -> None:
    warmup_queue, pipeline = WarmupQueue(FakeClock()), FakePipeline()
    for number in range(MAX_OF_TENANT + 1):
        warmup_queue.add_warmup(ACME, make_arrival(path=f"{number}.py"))

    async with _running(warmup_queue, pipeline):
        num_ended = await _wait_for_end(warmup_queue, MAX_OF_TENANT + 1)

    assert num_ended == {"evicted": 1, "warmed": MAX_OF_TENANT}
    assert "0.py" not in [arrival.draft.path for arrival in pipeline.arrivals]


def test_a_tenant_leaves_room_for_others() -> None:
    warmup_queue = WarmupQueue(FakeClock())
    for _ in range(MAX_WAITING):
        warmup_queue.add_warmup(ACME, make_arrival())

    warmup_queue.add_warmup(GLOBEX, make_arrival())

    assert warmup_queue.num_waiting == MAX_OF_TENANT + 1


def test_the_number_of_waiting_warm_ups_is_limited() -> None:
    warmup_queue = WarmupQueue(FakeClock())
    for number in range(MAX_WAITING + 3):
        warmup_queue.add_warmup(TenantId(str(number)), make_arrival())

    assert warmup_queue.num_waiting == MAX_WAITING
    assert warmup_queue.num_ended == {"full": 3}


async def test_the_number_of_concurrent_warm_ups_is_limited() -> None:
    warmup_queue, pipeline = WarmupQueue(FakeClock()), FakePipeline()
    pipeline.hangs = True

    async with _running(warmup_queue, pipeline):
        for number in range(4):
            warmup_queue.add_warmup(TenantId(str(number)), make_arrival())
        await wait_until(lambda: len(pipeline.arrivals) >= MAX_AT_ONCE)
        await asyncio.sleep(0.01)  # seconds: enough for a further warm-up to start

        assert len(pipeline.arrivals) == MAX_AT_ONCE


async def test_the_first_warm_up_of_a_tenant_precedes_the_second_of_another() -> None:
    warmup_queue, pipeline = WarmupQueue(FakeClock()), FakePipeline()
    pipeline.hangs = True
    for tenant_id, path in ((ACME, "1.py"), (ACME, "2.py"), (GLOBEX, "3.py")):
        warmup_queue.add_warmup(tenant_id, make_arrival(path=path))

    async with _running(warmup_queue, pipeline):
        await wait_until(lambda: len(pipeline.arrivals) >= MAX_AT_ONCE)

    # Two warm-ups may run at once (MAX_AT_ONCE).
    assert [arrival.draft.path for arrival in pipeline.arrivals] == ["1.py", "3.py"]


async def test_a_single_tenant_may_use_all_slots() -> None:
    warmup_queue, pipeline = WarmupQueue(FakeClock()), FakePipeline()
    pipeline.hangs = True

    async with _running(warmup_queue, pipeline):
        for _ in range(MAX_AT_ONCE):
            warmup_queue.add_warmup(ACME, make_arrival())
        await wait_until(lambda: len(pipeline.arrivals) == MAX_AT_ONCE)


async def test_a_second_warm_up_is_cancelled_for_another_tenant() -> None:
    warmup_queue, pipeline = WarmupQueue(FakeClock()), FakePipeline()
    pipeline.hangs = True

    async with _running(warmup_queue, pipeline):
        for path in ("1.py", "2.py"):
            warmup_queue.add_warmup(ACME, make_arrival(path=path))
        await wait_until(lambda: len(pipeline.arrivals) == MAX_AT_ONCE)
        warmup_queue.add_warmup(GLOBEX, make_arrival(path="3.py"))
        await wait_until(lambda: len(pipeline.arrivals) > MAX_AT_ONCE)

        assert [arrival.draft.path for arrival in pipeline.arrivals] == ["1.py", "2.py", "3.py"]
        assert warmup_queue.num_waiting == 1  # the cancelled warm-up waits for its next try


async def test_a_warm_up_between_two_attempts_yields_to_another_tenant_and_continues() -> None:
    warmup_queue = WarmupQueue(FakeClock())
    may_end, paths = asyncio.Event(), list[str]()

    async def warm(arrival: IncomingRequest) -> None:
        paths.append(arrival.draft.path)
        if arrival.draft.path.startswith("acme"):
            await may_end.wait()
            if paths.count(arrival.draft.path) == 1:  # the first attempt of this warm-up
                raise CompletionDropped(FinishReason.SHED)

    async with _running(warmup_queue, warm):
        for number in range(MAX_AT_ONCE):
            warmup_queue.add_warmup(ACME, make_arrival(path=f"acme{number}.py"))
        await wait_until(lambda: len(paths) == MAX_AT_ONCE)
        warmup_queue.add_warmup(GLOBEX, make_arrival(path="globex.py"))
        may_end.set()
        num_ended = await _wait_for_end(warmup_queue, MAX_AT_ONCE + 1)

    assert num_ended == {"warmed": MAX_AT_ONCE + 1}
    assert paths[MAX_AT_ONCE] == "globex.py"


async def test_a_shed_warm_up_is_retried() -> None:
    shed = CompletionDropped(FinishReason.SHED)
    warmup_queue, pipeline = WarmupQueue(FakeClock()), FakePipeline(errors=[shed, shed])

    async with _running(warmup_queue, pipeline):
        warmup_queue.add_warmup(ACME, make_arrival())
        num_ended = await _wait_for_end(warmup_queue)

    assert (num_ended, len(pipeline.arrivals)) == ({"warmed": 1}, 3)


async def test_a_warm_up_that_is_always_shed_is_dropped() -> None:
    warmup_queue = WarmupQueue(FakeClock())
    pipeline = FakePipeline(errors=[CompletionDropped(FinishReason.SHED)] * 99)

    async with _running(warmup_queue, pipeline):
        warmup_queue.add_warmup(ACME, make_arrival())
        num_ended = await _wait_for_end(warmup_queue)

    assert (num_ended, len(pipeline.arrivals)) == ({"shed": 1}, MAX_TRIES)


async def test_a_failed_warm_up_is_not_retried() -> None:
    warmup_queue = WarmupQueue(FakeClock())
    pipeline = FakePipeline(errors=[EngineError("engine_disconnected", "")])

    async with _running(warmup_queue, pipeline):
        warmup_queue.add_warmup(ACME, make_arrival())
        num_ended = await _wait_for_end(warmup_queue)

    assert (num_ended, len(pipeline.arrivals)) == ({"engine_disconnected": 1}, 1)


async def test_an_internal_error_ends_only_its_warm_up() -> None:
    warmup_queue, pipeline = WarmupQueue(FakeClock()), FakePipeline(errors=[ValueError("planted")])

    async with _running(warmup_queue, pipeline):
        warmup_queue.add_warmup(ACME, make_arrival())
        warmup_queue.add_warmup(ACME, make_arrival())
        num_ended = await _wait_for_end(warmup_queue, 2)

    assert num_ended == {"defect": 1, "warmed": 1}


async def test_an_old_warm_up_is_dropped() -> None:
    clock = FakeClock()
    warmup_queue, pipeline = WarmupQueue(clock), FakePipeline()
    warmup_queue.add_warmup(ACME, make_arrival(clock=clock))
    clock.pass_s(MAX_AGE_S + 1)

    async with _running(warmup_queue, pipeline):
        num_ended = await _wait_for_end(warmup_queue)

    assert (num_ended, pipeline.arrivals) == ({"stale": 1}, [])


def test_the_first_completion_of_a_repository_starts_a_warm_up() -> None:
    clock = FakeClock()
    warmup_queue = WarmupQueue(clock)

    for repository in ("shop", "shop", "till", ""):  # "": unknown
        warmup_queue.on_request_admitted(
            make_admitted(repository=repository), make_arrival(clock=clock)
        )

    assert warmup_queue.num_waiting == 2


def test_an_edit_starts_no_warm_up_because_its_prompt_has_no_other_files() -> None:
    warmup_queue = WarmupQueue(FakeClock())

    warmup_queue.on_request_admitted(
        make_admitted(repository="shop", mode=Mode.EDIT), make_arrival(mode="edit")
    )
    assert warmup_queue.num_waiting == 0
    # The next request still counts as the first one of the repository.
    warmup_queue.on_request_admitted(make_admitted(repository="shop"), make_arrival())

    assert warmup_queue.num_waiting == 1


def test_a_chat_starts_no_warm_up_because_its_prompt_has_no_stable_part() -> None:
    warmup_queue = WarmupQueue(FakeClock())
    messages = (ChatMessage("user", "Why?"),)

    warmup_queue.on_request_admitted(
        make_admitted(repository="shop", mode=Mode.CHAT, messages=messages),
        make_arrival(mode="chat", messages=messages),
    )
    assert warmup_queue.num_waiting == 0
    # The next request still counts as the first one of the repository.
    warmup_queue.on_request_admitted(make_admitted(repository="shop"), make_arrival())

    assert warmup_queue.num_waiting == 1


def test_equally_named_repositories_of_two_tenants_are_distinct() -> None:
    warmup_queue = WarmupQueue(FakeClock())

    for tenant_id in (ACME, GLOBEX):
        principal = make_principal(tenant_id=tenant_id)
        warmup_queue.on_request_admitted(
            make_admitted(principal, repository="shop"), make_arrival()
        )

    assert warmup_queue.num_waiting == 2


def test_a_repository_is_warmed_up_again_after_a_long_time() -> None:
    clock = FakeClock()
    warmup_queue = WarmupQueue(clock)
    admitted = make_admitted(repository="shop")

    warmup_queue.on_request_admitted(admitted, make_arrival(clock=clock))
    clock.pass_s(REMEMBERED_S + 1)
    warmup_queue.on_request_admitted(admitted, make_arrival(clock=clock))

    assert warmup_queue.num_waiting == 2


def _warm_up_request(gateway: FakeGateway, **fields: Any) -> IncomingRequest:
    arrival = make_arrival(key_text=KEY.text, clock=gateway.clock, is_warm_up=True, **fields)
    return replace(arrival, draft=replace(arrival.draft, files=(OTHER_FILE,)))


async def test_only_the_stable_part_is_prefilled_and_no_usage_is_recorded() -> None:
    gateway = FakeGateway()
    arrival = _warm_up_request(gateway, prefix="a = 1\n" * 50)

    await warm_up(gateway.plane, arrival)
    client = FakeClient()
    draft = replace(arrival.draft, is_warm_up=False)
    await serve(gateway.plane, replace(arrival, draft=draft), client)

    warmed, real = gateway.engine.requests
    length = len(warmed.token_ids)
    assert MIN_TOKENS <= length < len(real.token_ids)
    assert warmed.token_ids == real.token_ids[:length]
    assert (warmed.max_tokens, warmed.replica, warmed.salt) == (1, real.replica, real.salt)
    assert warmed.priority > real.priority
    assert len(gateway.journal.completions) == 1


async def test_a_short_stable_part_is_not_prefilled() -> None:
    gateway = FakeGateway()

    with pytest.raises(CompletionDropped):
        await warm_up(gateway.plane, make_arrival(key_text=KEY.text, is_warm_up=True))

    assert gateway.engine.requests == []


async def test_a_busy_replica_is_not_warmed_up() -> None:
    gateway = FakeGateway()
    (replica,) = gateway.plane.router.pools.by_name["demo-fast"].replicas

    with gateway.plane.router.replicas.attempt(replica), pytest.raises(CompletionDropped):
        await warm_up(gateway.plane, _warm_up_request(gateway))

    assert gateway.engine.requests == []


async def test_a_request_preempts_a_warm_up() -> None:
    gateway = FakeGateway(engine=FakeEngine(chunks_of("b", stop=None), hangs=True))
    warm_up_task = asyncio.create_task(warm_up(gateway.plane, _warm_up_request(gateway)))
    await wait_until(lambda: gateway.engine.num_open == 1)

    gateway.engine.hangs = False
    gateway.engine.chunks = chunks_of("b")
    client = FakeClient()
    await serve(gateway.plane, make_arrival(key_text=KEY.text, clock=gateway.clock), client)
    await asyncio.gather(warm_up_task, return_exceptions=True)

    assert warm_up_task.cancelled()
    assert client.ends == ["done"]
    assert (gateway.engine.num_open, gateway.plane.admission.concurrency.num_in_flight) == (0, 0)


async def test_a_warm_up_does_not_count_as_load() -> None:
    gateway = FakeGateway(engine=FakeEngine(chunks_of("b", stop=None), hangs=True))
    warm_up_task = asyncio.create_task(warm_up(gateway.plane, _warm_up_request(gateway)))
    await wait_until(lambda: gateway.engine.num_open == 1)

    num_in_flight = gateway.plane.router.replicas.num_in_flight(gateway.engine.requests[0].replica)
    warm_up_task.cancel()
    await asyncio.gather(warm_up_task, return_exceptions=True)

    assert num_in_flight == 0
