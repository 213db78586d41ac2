"""A bounded cache of files, in which no tenant has more than a quarter of the entries.

A scope is a cache namespace and a repository. All entries of a scope are removed together.
"""

from inference.retrieval.snippet_cache import FileKey
from inference.retrieval.tenant_lru import TenantLru


class _CountingKey(FileKey):
    """A file key that counts how often its scope is read."""

    num_scope_reads = 0

    @property
    def scope(self) -> tuple[str, str]:
        type(self).num_scope_reads += 1
        return super().scope


def _key(number: int, tenant: str = "acme", repository: str = "shop") -> FileKey:
    return _CountingKey(_namespace(tenant), repository, f"{number}.py")


def _namespace(tenant: str) -> str:
    """Return a cache namespace that all users of the tenant share.

    Its form is `tenant|partition|epoch`. Only in strict isolation is the partition not empty.
    """
    return f"{tenant}||0"


def test_the_least_recently_used_item_of_a_tenant_is_evicted_first() -> None:
    cache = TenantLru[FileKey, int](max_items=12)  # a tenant may have a quarter of them
    for number in range(3):
        cache.set(_key(number), number)
    cache.touch(_key(0))

    cache.set(_key(3), 3)

    assert [value for _, value in cache.items()] == [2, 0, 3]


def test_a_full_cache_evicts_from_the_largest_tenant() -> None:
    cache = TenantLru[FileKey, int](max_items=8)
    for number in range(8):
        cache.set(_key(number, f"t{number // 2}"), number)

    cache.set(_key(8, "late"), 8)  # four tenants have two items each

    assert sorted(value for _, value in cache.items()) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert len(cache) == 8


def test_removing_a_scope_does_not_inspect_the_others() -> None:
    cache = TenantLru[FileKey, int](max_items=10_000)
    for number in range(2_000):
        cache.set(_key(number, repository="shop" if number < 5 else "other"), number)
    _CountingKey.num_scope_reads = 0

    cache.remove_scope((_namespace("acme"), "shop"))

    assert len(cache) == 1_995
    assert cache.get(_key(0)) is None
    assert _CountingKey.num_scope_reads < 30  # a few for each of the five removed keys
