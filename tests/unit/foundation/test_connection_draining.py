"""The executor that spreads callbacks over time, for connections that all close at once.

In each turn of 4 ms it runs a limited number of callbacks, in order. The first ones run
immediately.
"""

import asyncio
from functools import partial

from caret.foundation.web.connection_draining import MAX_PER_TURN, PacedExecutor
from tests.fakes.polling import wait_until


async def test_a_single_callback_runs_immediately() -> None:
    done: list[int] = []

    PacedExecutor().schedule(partial(done.append, 1))

    assert done == [1]


async def test_only_a_limited_number_of_callbacks_run_immediately() -> None:
    done: list[int] = []
    executor = PacedExecutor()

    for number in range(3 * MAX_PER_TURN):
        executor.schedule(partial(done.append, number))

    assert done == list(range(MAX_PER_TURN))


async def test_callbacks_run_in_order() -> None:
    done: list[int] = []
    executor = PacedExecutor()
    for number in range(3 * MAX_PER_TURN + 1):
        executor.schedule(partial(done.append, number))

    await wait_until(lambda: len(done) > 3 * MAX_PER_TURN)

    assert done == list(range(3 * MAX_PER_TURN + 1))


async def test_other_tasks_run_between_turns() -> None:
    done: list[int] = []
    executor = PacedExecutor()
    for number in range(5 * MAX_PER_TURN):
        executor.schedule(partial(done.append, number))

    nums_done_between_turns = set()
    while len(done) < 5 * MAX_PER_TURN:
        nums_done_between_turns.add(len(done))
        await asyncio.sleep(0)

    assert nums_done_between_turns == {turn * MAX_PER_TURN for turn in range(1, 5)}


async def test_a_single_callback_runs_immediately_after_a_pause() -> None:
    done: list[int] = []
    executor = PacedExecutor()
    for number in range(2 * MAX_PER_TURN):
        executor.schedule(partial(done.append, number))
    await wait_until(lambda: executor._next is None)  # until no turn is pending

    executor.schedule(partial(done.append, -1))

    assert done[-1] == -1


async def test_a_dropped_callback_does_not_run() -> None:
    done: list[int] = []
    executor = PacedExecutor(max_per_turn=1)
    callbacks = [partial(done.append, number) for number in range(3)]
    for callback in callbacks:
        executor.schedule(callback)

    executor.drop(callbacks[1])
    executor.drop(callbacks[0])  # no effect: it has already run

    await wait_until(lambda: len(done) == 2)
    assert done == [0, 2]
