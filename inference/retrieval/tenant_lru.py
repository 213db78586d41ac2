"""A bounded map that evicts the least recently used entries (LRU), tenant by tenant.

Rules:
1. The size is limited, and no tenant has more than a quarter of the entries. So busy tenants evict
   their own entries.
2. All entries of one scope can be removed without a search.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final, Generic, Protocol, TypeVar

MAX_SHARE: Final = 0.25  # of all entries, for one tenant


class TenantScoped(Protocol):
    """A key of the map that belongs to a tenant. Compared and hashed by value."""

    @property
    def scope(self) -> tuple[str, str]:
        """The cache namespace, which begins with the tenant ID, and the repository."""


Key = TypeVar("Key", bound=TenantScoped)
Value = TypeVar("Value")


class TenantLru(Generic[Key, Value]):
    def __init__(self, *, max_items: int) -> None:
        self._max_items = max_items
        self._max_of_tenant = max(1, int(max_items * MAX_SHARE))
        self._num_items = 0
        self._by_tenant: dict[str, OrderedDict[Key, Value]] = {}
        self._by_scope: dict[tuple[str, str], set[Key]] = {}

    def __len__(self) -> int:
        return self._num_items

    def items(self) -> Iterator[tuple[Key, Value]]:
        for entries in self._by_tenant.values():
            yield from entries.items()

    def get(self, key: Key) -> Value | None:
        """Return the value; None if there is none. This does not count as a use: see `touch`."""
        entries = self._by_tenant.get(_tenant_of(key))
        return None if entries is None else entries.get(key)

    def touch(self, key: Key) -> None:
        """Mark an existing key as the most recently used of its tenant."""
        self._by_tenant[_tenant_of(key)].move_to_end(key)

    def set(self, key: Key, value: Value) -> None:
        """Store the value. If necessary, evict the least recently used entry of a tenant.

        The tenant is the key's own if it has too many entries, or else the one with the most.
        """
        entries = self._by_tenant.setdefault(_tenant_of(key), OrderedDict())
        self._num_items += 0 if key in entries else 1
        entries[key] = value
        entries.move_to_end(key)
        self._by_scope.setdefault(key.scope, set()).add(key)
        if len(entries) > self._max_of_tenant:
            self.remove(next(iter(entries)))
        elif self._num_items > self._max_items:
            largest = max(self._by_tenant.values(), key=lambda entries: len(entries))
            self.remove(next(iter(largest)))

    def remove(self, key: Key) -> None:
        """Remove an existing key."""
        tenant, scope = _tenant_of(key), key.scope
        del self._by_tenant[tenant][key]
        self._num_items -= 1
        if not self._by_tenant[tenant]:
            del self._by_tenant[tenant]
        self._by_scope[scope].remove(key)
        if not self._by_scope[scope]:
            del self._by_scope[scope]

    def remove_scope(self, scope: tuple[str, str]) -> None:
        for key in tuple(self._by_scope.get(scope, ())):
            self.remove(key)

    def clear(self) -> None:
        self._num_items = 0
        self._by_tenant.clear()
        self._by_scope.clear()


def _tenant_of(key: TenantScoped) -> str:
    """Return the tenant ID, with which the namespace begins (see Principal.namespace)."""
    namespace, _ = key.scope
    return namespace.partition("|")[0]
