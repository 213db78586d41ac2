"""Closed connections: one is reported at once, many are spread; none is lost or reordered."""

import asyncio
from functools import partial

from caret.foundation.web.connection_draining import MAX_PER_TURN, PacedExecutor
from tests.fakes.polling import until


async def test_a_single_end_is_told_at_once() -> None:
    told: list[int] = []

    PacedExecutor().schedule(lambda: told.append(1))

    assert told == [1]


async def test_of_many_ends_a_few_are_told_in_a_turn() -> None:
    told: list[int] = []
    turns = PacedExecutor()

    for number in range(3 * MAX_PER_TURN):
        turns.schedule(lambda number=number: told.append(number))  # type: ignore[misc]  # binds it

    assert told == list(range(MAX_PER_TURN))


async def test_all_ends_are_told_in_their_order() -> None:
    told: list[int] = []
    turns = PacedExecutor()
    for number in range(3 * MAX_PER_TURN + 1):
        turns.schedule(lambda number=number: told.append(number))  # type: ignore[misc]  # binds it

    await until(lambda: len(told) > 3 * MAX_PER_TURN)

    assert told == list(range(3 * MAX_PER_TURN + 1))


async def test_others_get_their_word_between_the_turns() -> None:
    told: list[int] = []
    turns = PacedExecutor()
    for number in range(5 * MAX_PER_TURN):
        turns.schedule(lambda number=number: told.append(number))  # type: ignore[misc]  # binds it

    seen = set()
    while len(told) < 5 * MAX_PER_TURN:
        seen.add(len(told))
        await asyncio.sleep(0)

    assert seen == {turn * MAX_PER_TURN for turn in range(1, 5)}


async def test_after_a_rest_a_single_end_is_told_at_once_again() -> None:
    told: list[int] = []
    turns = PacedExecutor()
    for number in range(2 * MAX_PER_TURN):
        turns.schedule(lambda number=number: told.append(number))  # type: ignore[misc]  # binds it
    await until(lambda: turns._next is None)

    turns.schedule(lambda: told.append(-1))

    assert told[-1] == -1


async def test_dropped_work_is_not_done() -> None:
    told: list[int] = []
    executor = PacedExecutor(1)
    works = [partial(told.append, number) for number in range(3)]
    for work in works:
        executor.schedule(work)

    executor.drop(works[1])
    executor.drop(works[0])  # done already

    await until(lambda: len(told) == 2)
    assert told == [0, 2]
