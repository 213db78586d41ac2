"""A cache of files: limited, in fair shares, and searchable by scope."""

from inference.retrieval.snippet_cache import FileKey
from inference.retrieval.tenant_lru import TenantLru


class _CountingKey(FileKey):
    """A file key that counts its comparisons."""

    num_comparisons = 0

    @property
    def scope(self) -> tuple[str, str]:
        type(self).num_comparisons += 1
        return super().scope


def _key(number: int, tenant: str = "acme", repository: str = "shop") -> FileKey:
    return _CountingKey(f"{tenant}||0", repository, f"{number}.py")


def test_the_least_recently_used_item_of_a_tenant_is_evicted_first() -> None:
    cache = TenantLru[FileKey, int](max_items=12)  # of which a tenant may have a quarter
    for number in range(3):
        cache.set(_key(number), number)
    cache.touch(_key(0))

    cache.set(_key(3), 3)

    assert [value for _, value in cache.items()] == [2, 0, 3]


def test_a_full_cache_evicts_from_the_largest_tenant() -> None:
    cache = TenantLru[FileKey, int](max_items=8)
    for number in range(8):
        cache.set(_key(number, f"t{number // 2}"), number)

    cache.set(_key(8, "late"), 8)

    assert sorted(value for _, value in cache.items()) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert len(cache) == 8


def test_removing_a_scope_does_not_inspect_the_others() -> None:
    cache = TenantLru[FileKey, int](max_items=10_000)
    for number in range(2_000):
        cache.set(_key(number, repository="shop" if number < 5 else "other"), number)
    _CountingKey.num_comparisons = 0

    cache.remove_scope(("acme||0", "shop"))

    assert len(cache) == 1_995
    assert cache.get(_key(0)) is None
    assert _CountingKey.num_comparisons < 30
