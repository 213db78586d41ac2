"""Warm-ups: permission, priority and cleanup."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from caret.contracts.usage import FinishReason
from caret.foundation.ids import TenantId
from inference.completion.incoming_request import ContextFile, IncomingRequest
from inference.errors import CompletionDropped, EngineError
from inference.pipeline import serve, warm_up
from inference.prefix_cache import warmup as stage
from inference.prefix_cache.warmup import (
    MAX_AGE_S,
    MAX_AT_ONCE,
    MAX_OF_TENANT,
    MAX_TRIES,
    MAX_WAITING,
    REMEMBERED_S,
    WarmupQueue,
)
from tests.fakes.client import FakeClient
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.gateway import KEY, FakeGateway
from tests.fakes.polling import until
from tests.fakes.requests import make_admitted, make_arrival
from tests.fakes.tenants import ACME, GLOBEX, make_principal

OTHER_FILE = ContextFile("b.py", "def area(self):\n    return 1\n" * 40, edited_at=0.0)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "PAUSE_S", 0.0)  # the pause itself, not our code


class Warming:
    """Stands in for the pipeline."""

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
async def _running(warmup_queue: WarmupQueue, warming: Any) -> AsyncIterator[None]:
    running = asyncio.create_task(warmup_queue.run(warming))
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _ended(warmup_queue: WarmupQueue, count: int = 1) -> dict[str, int]:
    await until(lambda: warmup_queue.num_ended.total() >= count)
    return dict(warmup_queue.num_ended)


async def test_a_file_that_is_opened_is_warmed() -> None:
    warmup_queue, warming = WarmupQueue(FakeClock()), Warming()

    async with _running(warmup_queue, warming):
        warmup_queue.on_file_opened(ACME, make_arrival(path="a.py"))
        ended = await _ended(warmup_queue)

    assert ended == {"warmed": 1}
    assert [arrival.draft.path for arrival in warming.arrivals] == ["a.py"]


async def test_the_newest_of_a_tenant_displaces_its_oldest() -> None:
    warmup_queue, warming = WarmupQueue(FakeClock()), Warming()
    for number in range(MAX_OF_TENANT + 1):
        warmup_queue.on_file_opened(ACME, make_arrival(path=f"{number}.py"))

    async with _running(warmup_queue, warming):
        ended = await _ended(warmup_queue, MAX_OF_TENANT + 1)

    assert ended == {"evicted": 1, "warmed": MAX_OF_TENANT}
    assert "0.py" not in [arrival.draft.path for arrival in warming.arrivals]


def test_one_tenant_leaves_room_for_another() -> None:
    warmup_queue = WarmupQueue(FakeClock())
    for _ in range(MAX_WAITING):
        warmup_queue.on_file_opened(ACME, make_arrival())

    warmup_queue.on_file_opened(GLOBEX, make_arrival())

    assert warmup_queue.num_waiting == MAX_OF_TENANT + 1


def test_what_waits_is_bounded_in_all() -> None:
    warmup_queue = WarmupQueue(FakeClock())
    for number in range(MAX_WAITING + 3):
        warmup_queue.on_file_opened(TenantId(str(number)), make_arrival())

    assert warmup_queue.num_waiting == MAX_WAITING
    assert warmup_queue.num_ended == {"full": 3}


async def test_few_run_at_once() -> None:
    warmup_queue, warming = WarmupQueue(FakeClock()), Warming()
    warming.hangs = True

    async with _running(warmup_queue, warming):
        for number in range(4):
            warmup_queue.on_file_opened(TenantId(str(number)), make_arrival())
        await until(lambda: len(warming.arrivals) >= MAX_AT_ONCE)
        await asyncio.sleep(0.01)

        assert len(warming.arrivals) == MAX_AT_ONCE


async def test_a_neighbours_wish_goes_before_a_tenants_second() -> None:
    warmup_queue, warming = WarmupQueue(FakeClock()), Warming()
    warming.hangs = True
    for tenant_id, path in ((ACME, "1.py"), (ACME, "2.py"), (GLOBEX, "3.py")):
        warmup_queue.on_file_opened(tenant_id, make_arrival(path=path))

    async with _running(warmup_queue, warming):
        await until(lambda: len(warming.arrivals) >= MAX_AT_ONCE)

    assert [arrival.draft.path for arrival in warming.arrivals] == ["1.py", "3.py"]


async def test_alone_a_tenant_has_all_that_run_at_once() -> None:
    warmup_queue, warming = WarmupQueue(FakeClock()), Warming()
    warming.hangs = True

    async with _running(warmup_queue, warming):
        for _ in range(MAX_AT_ONCE):
            warmup_queue.on_file_opened(ACME, make_arrival())
        await until(lambda: len(warming.arrivals) == MAX_AT_ONCE)


async def test_a_second_that_hangs_makes_way_for_a_neighbour() -> None:
    warmup_queue, warming = WarmupQueue(FakeClock()), Warming()
    warming.hangs = True

    async with _running(warmup_queue, warming):
        for path in ("1.py", "2.py"):
            warmup_queue.on_file_opened(ACME, make_arrival(path=path))
        await until(lambda: len(warming.arrivals) == MAX_AT_ONCE)
        warmup_queue.on_file_opened(GLOBEX, make_arrival(path="3.py"))
        await until(lambda: len(warming.arrivals) > MAX_AT_ONCE)

        assert [arrival.draft.path for arrival in warming.arrivals] == ["1.py", "2.py", "3.py"]
        assert warmup_queue.num_waiting == 1


async def test_between_two_tries_a_tenants_second_gives_way_and_goes_on_afterwards() -> None:
    warmup_queue = WarmupQueue(FakeClock())
    busy, paths = asyncio.Event(), list[str]()

    async def warm(arrival: IncomingRequest) -> None:
        paths.append(arrival.draft.path)
        if arrival.draft.path.startswith("acme"):
            await busy.wait()
            if paths.count(arrival.draft.path) == 1:
                raise CompletionDropped(FinishReason.SHED)

    async with _running(warmup_queue, warm):
        for number in range(MAX_AT_ONCE):
            warmup_queue.on_file_opened(ACME, make_arrival(path=f"acme{number}.py"))
        await until(lambda: len(paths) == MAX_AT_ONCE)
        warmup_queue.on_file_opened(GLOBEX, make_arrival(path="globex.py"))
        busy.set()
        ended = await _ended(warmup_queue, MAX_AT_ONCE + 1)

    assert ended == {"warmed": MAX_AT_ONCE + 1}
    assert paths[MAX_AT_ONCE] == "globex.py"


async def test_what_was_shed_is_tried_again() -> None:
    shed = CompletionDropped(FinishReason.SHED)
    warmup_queue, warming = WarmupQueue(FakeClock()), Warming(errors=[shed, shed])

    async with _running(warmup_queue, warming):
        warmup_queue.on_file_opened(ACME, make_arrival())
        ended = await _ended(warmup_queue)

    assert (ended, len(warming.arrivals)) == ({"warmed": 1}, 3)


async def test_what_is_shed_each_time_is_let_go() -> None:
    warmup_queue = WarmupQueue(FakeClock())
    warming = Warming(errors=[CompletionDropped(FinishReason.SHED)] * 99)

    async with _running(warmup_queue, warming):
        warmup_queue.on_file_opened(ACME, make_arrival())
        ended = await _ended(warmup_queue)

    assert (ended, len(warming.arrivals)) == ({"shed": 1}, MAX_TRIES)


async def test_what_failed_is_not_tried_again() -> None:
    warmup_queue = WarmupQueue(FakeClock())
    warming = Warming(errors=[EngineError("engine_disconnected", "")])

    async with _running(warmup_queue, warming):
        warmup_queue.on_file_opened(ACME, make_arrival())
        ended = await _ended(warmup_queue)

    assert (ended, len(warming.arrivals)) == ({"engine_disconnected": 1}, 1)


async def test_a_defect_ends_nothing_but_its_warm_up() -> None:
    warmup_queue, warming = WarmupQueue(FakeClock()), Warming(errors=[ValueError("planted")])

    async with _running(warmup_queue, warming):
        warmup_queue.on_file_opened(ACME, make_arrival())
        warmup_queue.on_file_opened(ACME, make_arrival())
        ended = await _ended(warmup_queue, 2)

    assert ended == {"defect": 1, "warmed": 1}


async def test_what_is_old_is_let_go() -> None:
    clock = FakeClock()
    warmup_queue, warming = WarmupQueue(clock), Warming()
    warmup_queue.on_file_opened(ACME, make_arrival(clock=clock))
    clock.pass_s(MAX_AGE_S + 1)

    async with _running(warmup_queue, warming):
        ended = await _ended(warmup_queue)

    assert (ended, warming.arrivals) == ({"stale": 1}, [])


def test_the_first_completion_of_a_repository_is_followed_by_a_warm_up() -> None:
    clock = FakeClock()
    warmup_queue = WarmupQueue(clock)

    for repository in ("shop", "shop", "till", ""):
        warmup_queue.on_request_admitted(
            make_admitted(repository=repository), make_arrival(clock=clock)
        )

    assert warmup_queue.num_waiting == 2


def test_the_neighbours_repository_of_the_same_name_is_another() -> None:
    warmup_queue = WarmupQueue(FakeClock())

    for tenant_id in (ACME, GLOBEX):
        principal = make_principal(tenant_id=tenant_id)
        warmup_queue.on_request_admitted(
            make_admitted(principal, repository="shop"), make_arrival()
        )

    assert warmup_queue.num_waiting == 2


def test_a_repository_that_was_left_for_long_is_new_again() -> None:
    clock = FakeClock()
    warmup_queue = WarmupQueue(clock)
    admitted = make_admitted(repository="shop")

    warmup_queue.on_request_admitted(admitted, make_arrival(clock=clock))
    clock.pass_s(REMEMBERED_S + 1)
    warmup_queue.on_request_admitted(admitted, make_arrival(clock=clock))

    assert warmup_queue.num_waiting == 2


def _opened(gateway: FakeGateway, **fields: Any) -> IncomingRequest:
    arrival = make_arrival(key_text=KEY.text, clock=gateway.clock, is_warm_up=True, **fields)
    return replace(arrival, draft=replace(arrival.draft, files=(OTHER_FILE,)))


async def test_only_what_stays_put_is_prefilled_and_nothing_is_recorded() -> None:
    gateway = FakeGateway()
    arrival = _opened(gateway, prefix="a = 1\n" * 50)

    await warm_up(gateway.plane, arrival)
    client = FakeClient()
    draft = replace(arrival.draft, is_warm_up=False)
    await serve(gateway.plane, replace(arrival, draft=draft), client)

    warmed, real = gateway.engine.requests
    length = len(warmed.token_ids)
    assert 64 <= length < len(real.token_ids)
    assert warmed.token_ids == real.token_ids[:length]
    assert (warmed.max_tokens, warmed.replica, warmed.salt) == (1, real.replica, real.salt)
    assert warmed.priority > real.priority
    assert len(gateway.journal.completions) == 1


async def test_where_little_stays_put_nothing_is_asked() -> None:
    gateway = FakeGateway()

    with pytest.raises(CompletionDropped):
        await warm_up(gateway.plane, make_arrival(key_text=KEY.text, is_warm_up=True))

    assert gateway.engine.requests == []


async def test_a_busy_replica_is_not_warmed() -> None:
    gateway = FakeGateway()
    (replica,) = gateway.plane.router.pools.by_name["demo-fast"].replicas

    with gateway.plane.router.replicas.attempt(replica), pytest.raises(CompletionDropped):
        await warm_up(gateway.plane, _opened(gateway))

    assert gateway.engine.requests == []


async def test_a_warm_up_gives_way_to_a_request_and_leaves_nothing_behind() -> None:
    gateway = FakeGateway(engine=FakeEngine(chunks_of("b", stop=None), hangs=True))
    warming = asyncio.create_task(warm_up(gateway.plane, _opened(gateway)))
    await until(lambda: gateway.engine.num_open == 1)

    gateway.engine.hangs = False
    gateway.engine.chunks = chunks_of("b")
    client = FakeClient()
    await serve(gateway.plane, make_arrival(key_text=KEY.text, clock=gateway.clock), client)
    await asyncio.gather(warming, return_exceptions=True)

    assert warming.cancelled()
    assert client.ends == ["done"]
    assert (gateway.engine.num_open, gateway.plane.admission.concurrency.num_in_flight) == (0, 0)


async def test_a_warm_up_does_not_count_as_load() -> None:
    gateway = FakeGateway(engine=FakeEngine(chunks_of("b", stop=None), hangs=True))
    warming = asyncio.create_task(warm_up(gateway.plane, _opened(gateway)))
    await until(lambda: gateway.engine.num_open == 1)

    num_under_way = gateway.plane.router.replicas.num_in_flight(gateway.engine.requests[0].replica)
    warming.cancel()
    await asyncio.gather(warming, return_exceptions=True)

    assert num_under_way == 0
