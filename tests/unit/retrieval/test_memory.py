"""Search results are cached for a while, for the same scope only."""

from dataclasses import replace

import pytest

from inference.completion.snippet import Snippet
from inference.retrieval.snippet_cache import LIFETIME_S, FileKey, SnippetCache
from tests.fakes.clock import FakeClock
from tests.fakes.tenants import make_policy

HERE = FileKey(namespace="acme||0", repository="shop", path="now.py")
FOUND = (Snippet("invoices.py", "total", 0.9), Snippet("secrets/a.py", "key", 0.5))
POLICY = make_policy(retrieval=("shop",))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_it_is_there_for_its_place(clock: FakeClock) -> None:
    memory = SnippetCache(clock)

    memory.store(HERE, FOUND)

    assert memory.find(HERE, POLICY) == FOUND


@pytest.mark.parametrize(
    "change",
    [{"namespace": "acme||1"}, {"namespace": "globex||0"}, {"repository": "s"}, {"path": "b.py"}],
)
def test_it_is_nowhere_else(clock: FakeClock, change: dict[str, str]) -> None:
    memory = SnippetCache(clock)
    memory.store(HERE, FOUND)

    assert memory.find(replace(HERE, **change), make_policy(retrieval=("*",))) == ()


def test_it_is_forgotten_in_time(clock: FakeClock) -> None:
    memory = SnippetCache(clock)
    memory.store(HERE, FOUND)

    clock.pass_s(LIFETIME_S)

    assert memory.find(HERE, POLICY) == ()


def test_what_nobody_asks_for_is_forgotten_too(clock: FakeClock) -> None:
    memory = SnippetCache(clock)
    memory.store(HERE, FOUND)
    clock.pass_s(LIFETIME_S)

    memory.evict_expired()

    assert not memory._entries


def test_a_policy_that_changed_takes_back_what_it_no_longer_allows(clock: FakeClock) -> None:
    memory = SnippetCache(clock)
    memory.store(HERE, FOUND)
    memory.find(HERE, POLICY)

    excluding = make_policy(retrieval=("shop",), content_exclusion={"shop": ("secrets/**",)})
    out = make_policy(retrieval=())

    assert [each.path for each in memory.find(HERE, excluding)] == ["invoices.py"]
    assert memory.find(HERE, out) == ()
    assert memory.find(HERE, POLICY) == FOUND


def test_the_least_recently_used_place_makes_room(clock: FakeClock) -> None:
    memory = SnippetCache(clock, max_places=8)
    places = [replace(HERE, path=f"{number}.py") for number in range(3)]
    memory.store(places[0], FOUND)
    memory.store(places[1], FOUND)
    memory.find(places[0], POLICY)

    memory.store(places[2], FOUND)

    assert [bool(memory.find(place, POLICY)) for place in places] == [True, False, True]


def test_one_tenants_places_displace_nobody_elses(clock: FakeClock) -> None:
    memory = SnippetCache(clock, max_places=100)
    memory.store(HERE, FOUND)

    for number in range(100):
        theirs = FileKey(namespace=f"globex|{number % 3}|0", repository="r", path=f"{number}.py")
        memory.store(theirs, FOUND)

    assert memory.find(HERE, POLICY) == FOUND
    assert len(memory._entries) == 26
