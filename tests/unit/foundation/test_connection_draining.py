"""Callbacks for closed connections: a limited number run in each turn of 4 ms, in order.

The first ones run immediately.
"""

import asyncio
from functools import partial

from caret.foundation.web.connection_draining import MAX_PER_TURN, PacedExecutor
from tests.fakes.polling import wait_until


async def test_a_single_callback_runs_immediately() -> None:
    done: list[int] = []

    PacedExecutor().schedule(lambda: done.append(1))

    assert done == [1]


async def test_a_limited_number_of_callbacks_run_in_one_turn() -> None:
    done: list[int] = []
    executor = PacedExecutor()

    for number in range(3 * MAX_PER_TURN):
        executor.schedule(lambda number=number: done.append(number))  # type: ignore[misc]  # binds it

    assert done == list(range(MAX_PER_TURN))


async def test_callbacks_run_in_order() -> None:
    done: list[int] = []
    executor = PacedExecutor()
    for number in range(3 * MAX_PER_TURN + 1):
        executor.schedule(lambda number=number: done.append(number))  # type: ignore[misc]  # binds it

    await wait_until(lambda: len(done) > 3 * MAX_PER_TURN)

    assert done == list(range(3 * MAX_PER_TURN + 1))


async def test_other_tasks_run_between_turns() -> None:
    done: list[int] = []
    executor = PacedExecutor()
    for number in range(5 * MAX_PER_TURN):
        executor.schedule(lambda number=number: done.append(number))  # type: ignore[misc]  # binds it

    num_done_at_turn = set()
    while len(done) < 5 * MAX_PER_TURN:
        num_done_at_turn.add(len(done))
        await asyncio.sleep(0)

    assert num_done_at_turn == {turn * MAX_PER_TURN for turn in range(1, 5)}


async def test_a_single_callback_runs_immediately_after_a_pause() -> None:
    done: list[int] = []
    executor = PacedExecutor()
    for number in range(2 * MAX_PER_TURN):
        executor.schedule(lambda number=number: done.append(number))  # type: ignore[misc]  # binds it
    await wait_until(lambda: executor._next is None)

    executor.schedule(lambda: done.append(-1))

    assert done[-1] == -1


async def test_a_dropped_callback_does_not_run() -> None:
    done: list[int] = []
    executor = PacedExecutor(1)
    callbacks = [partial(done.append, number) for number in range(3)]
    for callback in callbacks:
        executor.schedule(callback)

    executor.drop(callbacks[1])
    executor.drop(callbacks[0])  # done already

    await wait_until(lambda: len(done) == 2)
    assert done == [0, 2]
