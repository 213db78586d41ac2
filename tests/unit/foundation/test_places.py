"""Slots with a limit for each holder and in all; nothing waits for one."""

import pytest

from caret.foundation.concurrency.bulkhead import Bulkhead, BulkheadFull


def test_who_has_all_of_his_gets_no_more() -> None:
    places = Bulkhead(max_each=2, max_all=8)

    with places.acquire("a"), places.acquire("a"), pytest.raises(BulkheadFull), places.acquire("a"):
        pass


def test_his_neighbour_has_his_own() -> None:
    places = Bulkhead(max_each=1, max_all=8)

    with places.acquire("a"), places.acquire("b"):
        pass


def test_all_together_have_no_more_than_there_are() -> None:
    places = Bulkhead(max_each=2, max_all=3)

    with (
        places.acquire("a"),
        places.acquire("a"),
        places.acquire("b"),
        pytest.raises(BulkheadFull),
        places.acquire("c"),
    ):
        pass


def test_a_place_comes_back_whatever_happened_in_it() -> None:
    places = Bulkhead(max_each=1, max_all=1)
    with pytest.raises(ZeroDivisionError), places.acquire("a"):
        _ = 1 / 0

    with places.acquire("a"):
        pass
