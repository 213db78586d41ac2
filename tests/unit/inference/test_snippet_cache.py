"""Search results are cached for a limited time, and only for the same scope."""

from dataclasses import replace

import pytest

from inference.completion.snippet import Snippet
from inference.retrieval.snippet_cache import LIFETIME_S, FileKey, SnippetCache
from tests.fakes.clock import FakeClock
from tests.fakes.tenants import make_policy

# namespace: tenant|user or service key (empty without strict isolation)|cache epoch
FILE = FileKey(namespace="acme||0", repository="shop", path="now.py")
FOUND = (Snippet("invoices.py", "total", 0.9), Snippet("secrets/a.py", "key", 0.5))
POLICY = make_policy(retrieval=("shop",))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_results_are_found_for_their_file(clock: FakeClock) -> None:
    cache = SnippetCache(clock)

    cache.store(FILE, FOUND)

    assert cache.find(FILE, POLICY) == FOUND


@pytest.mark.parametrize(
    "change",
    [{"namespace": "acme||1"}, {"namespace": "globex||0"}, {"repository": "s"}, {"path": "b.py"}],
)
def test_results_are_found_in_no_other_scope(clock: FakeClock, change: dict[str, str]) -> None:
    cache = SnippetCache(clock)
    cache.store(FILE, FOUND)

    assert cache.find(replace(FILE, **change), make_policy(retrieval=("*",))) == ()


def test_results_expire(clock: FakeClock) -> None:
    cache = SnippetCache(clock)
    cache.store(FILE, FOUND)

    clock.pass_s(LIFETIME_S)

    assert cache.find(FILE, POLICY) == ()


def test_expired_results_are_evicted(clock: FakeClock) -> None:
    cache = SnippetCache(clock)
    cache.store(FILE, FOUND)
    clock.pass_s(LIFETIME_S)

    cache.evict_expired()

    assert not cache._entries


def test_a_changed_policy_filters_cached_results(clock: FakeClock) -> None:
    cache = SnippetCache(clock)
    cache.store(FILE, FOUND)
    cache.find(FILE, POLICY)

    excluding = make_policy(retrieval=("shop",), content_exclusion={"shop": ("secrets/**",)})
    without_retrieval = make_policy(retrieval=())

    assert [snippet.path for snippet in cache.find(FILE, excluding)] == ["invoices.py"]
    assert cache.find(FILE, without_retrieval) == ()
    assert cache.find(FILE, POLICY) == FOUND


def test_the_least_recently_used_file_is_evicted(clock: FakeClock) -> None:
    cache = SnippetCache(clock, max_entries=8)  # of which a tenant may have a quarter
    files = [replace(FILE, path=f"{number}.py") for number in range(3)]
    cache.store(files[0], FOUND)
    cache.store(files[1], FOUND)
    cache.find(files[0], POLICY)

    cache.store(files[2], FOUND)

    assert [bool(cache.find(file, POLICY)) for file in files] == [True, False, True]


def test_files_of_a_tenant_do_not_evict_files_of_another_tenant(clock: FakeClock) -> None:
    cache = SnippetCache(clock, max_entries=100)
    cache.store(FILE, FOUND)

    for number in range(100):
        other_file = FileKey(
            namespace=f"globex|{number % 3}|0", repository="r", path=f"{number}.py"
        )
        cache.store(other_file, FOUND)

    assert cache.find(FILE, POLICY) == FOUND
    assert len(cache._entries) == 26  # a quarter of 100 for globex, and the file of acme
