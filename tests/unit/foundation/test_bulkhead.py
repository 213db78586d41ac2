"""A bulkhead: slots with a limit for each holder and in total. Nothing waits for a slot."""

import pytest

from caret.foundation.concurrency.bulkhead import Bulkhead, BulkheadFull


def test_a_holder_gets_no_more_than_its_limit() -> None:
    bulkhead = Bulkhead(max_per_holder=2, max_total=8)

    with (
        bulkhead.acquire("a"),
        bulkhead.acquire("a"),
        pytest.raises(BulkheadFull),
        bulkhead.acquire("a"),
    ):
        pass


def test_each_holder_has_its_own_limit() -> None:
    bulkhead = Bulkhead(max_per_holder=1, max_total=8)

    with bulkhead.acquire("a"), bulkhead.acquire("b"):
        pass


def test_the_total_number_of_slots_is_limited() -> None:
    bulkhead = Bulkhead(max_per_holder=2, max_total=3)

    with (
        bulkhead.acquire("a"),
        bulkhead.acquire("a"),
        bulkhead.acquire("b"),
        pytest.raises(BulkheadFull),
        bulkhead.acquire("c"),
    ):
        pass


def test_a_slot_is_freed_after_an_exception() -> None:
    bulkhead = Bulkhead(max_per_holder=1, max_total=1)

    with pytest.raises(ZeroDivisionError), bulkhead.acquire("a"):
        _ = 1 / 0

    with bulkhead.acquire("a"):  # the only slot is free again
        pass
