"""What the gateway knows of tenants and keys: the newest snapshots, in memory.

Knows nothing of Redis; a feed (`snapshot_feed`) puts snapshots in and confirms that they are fresh.
Rules:
1. A snapshot is replaced by a newer one only.
2. Without a confirmation for `max_age_s` nobody is let in: a revocation might have been missed.
3. Who holds something on a key's behalf (a connection) can ask to be told when the key ends.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from caret.contracts.credential import Credential
from caret.contracts.snapshot import TenantSnapshot, TenantStatus
from caret.foundation.clock import Clock
from caret.foundation.crypto import derive_key
from caret.foundation.ids import KeyId, LookupId, TenantId


class Authority:
    def __init__(self, *, root_secret: bytes, clock: Clock, max_age_s: float) -> None:
        self._root_secret = root_secret
        self._clock = clock
        self._max_age_s = max_age_s
        self._confirmed_s: float | None = None  # None: no snapshot was ever read
        self._snapshots: dict[TenantId, TenantSnapshot] = {}
        # Lookup ids are random, not reserved: two tenants may hold the same; the digest decides.
        self._by_lookup: dict[LookupId, tuple[tuple[Credential, TenantSnapshot], ...]] = {}
        self._peppers: dict[int, bytes] = {}
        self._watchers: defaultdict[KeyId, set[Callable[[], None]]] = defaultdict(set)

    @property
    def versions(self) -> dict[TenantId, int]:
        return {tenant: snapshot.version for tenant, snapshot in self._snapshots.items()}

    def is_fresh(self) -> bool:
        confirmed_s = self._confirmed_s
        return (
            confirmed_s is not None and self._clock.monotonic_s() - confirmed_s <= self._max_age_s
        )

    def confirm(self) -> None:
        """All snapshots were compared with Redis just now."""
        self._confirmed_s = self._clock.monotonic_s()

    def replace(self, snapshot: TenantSnapshot) -> None:
        """Takes in a newer snapshot and tells the watchers of keys that it ends."""
        held = self._snapshots.get(snapshot.tenant_id)
        if held is not None and held.version >= snapshot.version:
            return
        self._snapshots[snapshot.tenant_id] = snapshot
        if held is not None:
            self._forget(held)
        for credential in snapshot.credentials:
            pairs = self._by_lookup.get(credential.lookup_id, ())
            self._by_lookup[credential.lookup_id] = (*pairs, (credential, snapshot))
        self._tell_watchers(held, snapshot)

    def candidates(self, lookup_id: LookupId) -> tuple[tuple[Credential, TenantSnapshot], ...]:
        return self._by_lookup.get(lookup_id, ())

    def pepper(self, version: int) -> bytes:
        if version not in self._peppers:
            self._peppers[version] = derive_key(self._root_secret, f"key-pepper/{version}")
        return self._peppers[version]

    @contextmanager
    def watching(self, key_id: KeyId, on_end: Callable[[], None]) -> Iterator[None]:
        """Calls `on_end` when the key is revoked or its tenant is no longer active."""
        watchers = self._watchers[key_id]
        watchers.add(on_end)
        try:
            yield
        finally:
            watchers.discard(on_end)
            if not watchers:
                self._watchers.pop(key_id, None)

    def _forget(self, snapshot: TenantSnapshot) -> None:
        for credential in snapshot.credentials:
            pairs = self._by_lookup.get(credential.lookup_id, ())
            kept = tuple(pair for pair in pairs if pair[1] is not snapshot)
            if kept:
                self._by_lookup[credential.lookup_id] = kept
            else:
                self._by_lookup.pop(credential.lookup_id, None)

    def _tell_watchers(self, held: TenantSnapshot | None, new: TenantSnapshot) -> None:
        before = _in_force(held) if held is not None else set()
        for key_id in before - _in_force(new):
            for on_end in tuple(self._watchers.get(key_id, ())):
                on_end()


def _in_force(snapshot: TenantSnapshot) -> set[KeyId]:
    if snapshot.status is not TenantStatus.ACTIVE:
        return set()
    return {each.key_id for each in snapshot.credentials if each.revoked_at_ms is None}
