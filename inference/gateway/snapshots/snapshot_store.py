"""What the gateway knows of tenants and keys: the newest snapshots, in memory.

Knows nothing of Redis; a feed (`snapshot_feed`) puts snapshots in and confirms that they are fresh.
Rules:
1. A snapshot is replaced by a newer one only.
2. Without a confirmation for `max_age_s` nobody is let in: a revocation might have been missed.
3. The same holds for one tenant whose newer snapshot cannot be read.
4. A credential comes with the policy as it is for its user, narrowed by layers (`restriction`), and
   with the budgets that concern him (`budgets`).
5. Who holds something on a key's behalf (a connection) can ask to be told when the key ends.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from caret.contracts.api_key import Credential
from caret.contracts.policy import TenantPolicy
from caret.contracts.policy_override import apply_overrides
from caret.contracts.snapshot import TenantSnapshot, TenantStatus
from caret.foundation.clock import Clock
from caret.foundation.crypto.key_derivation import derive_key
from caret.foundation.ids import KeyId, LookupId, TenantId, UserId
from inference.errors import TooManyRequests
from inference.gateway.snapshots.user_budgets import SpendingByUser


class SnapshotStore:
    def __init__(
        self,
        *,
        root_secret: bytes,
        clock: Clock,
        max_age_s: float,
        max_watchers: int = 1_000,
        region: str = "local",
    ) -> None:
        """`max_watchers` of one key: its connections and completions at one time. `region`: this
        gateway's."""
        self.region = region
        self._root_secret = root_secret
        self._clock = clock
        self._max_age_s = max_age_s
        self._max_watchers = max_watchers
        self._unreadable_s: dict[TenantId, float] = {}  # since when
        self._confirmed_s: float | None = None  # None: no snapshot was ever read
        self._snapshots: dict[TenantId, TenantSnapshot] = {}
        # Lookup ids are random, not reserved: two tenants may hold the same; the digest decides.
        self._by_lookup: dict[LookupId, tuple[tuple[Credential, _EffectiveSnapshots], ...]] = {}
        self._peppers: dict[int, bytes] = {}
        self._watchers: defaultdict[KeyId, set[Callable[[], object]]] = defaultdict(set)

    @property
    def versions(self) -> dict[TenantId, int]:
        return {tenant: snapshot.version for tenant, snapshot in self._snapshots.items()}

    @property
    def num_watchers(self) -> int:
        """Connections, and HTTP completions, that hold a key."""
        return sum(len(watchers) for watchers in self._watchers.values())

    @property
    def age_s(self) -> float | None:
        """Since all snapshots were last compared with Redis; None: they never were."""
        if self._confirmed_s is None:
            return None
        return self._clock.monotonic_s() - self._confirmed_s

    def is_fresh(self) -> bool:
        confirmed_s = self._confirmed_s
        return (
            confirmed_s is not None and self._clock.monotonic_s() - confirmed_s <= self._max_age_s
        )

    def is_readable(self, tenant_id: TenantId) -> bool:
        """Whether no newer snapshot of the tenant has been unreadable for too long."""
        since_s = self._unreadable_s.get(tenant_id)
        return since_s is None or self._clock.monotonic_s() - since_s <= self._max_age_s

    def mark_unreadable(self, tenant_id: TenantId) -> bool:
        """There is a newer snapshot that cannot be read; True when that is news."""
        is_news = tenant_id not in self._unreadable_s
        self._unreadable_s.setdefault(tenant_id, self._clock.monotonic_s())
        return is_news

    def mark_synced(self) -> None:
        """All snapshots were compared with Redis just now."""
        self._confirmed_s = self._clock.monotonic_s()

    def replace(self, snapshot: TenantSnapshot) -> None:
        """Takes in a newer snapshot and tells the watchers of keys that it ends."""
        held = self._snapshots.get(snapshot.tenant_id)
        if held is not None and held.version >= snapshot.version:
            return
        self._snapshots[snapshot.tenant_id] = snapshot
        self._unreadable_s.pop(snapshot.tenant_id, None)
        if held is not None:
            self._remove_credentials(held)
        narrowed = _EffectiveSnapshots(snapshot)
        for credential in snapshot.credentials:
            pairs = self._by_lookup.get(credential.lookup_id, ())
            self._by_lookup[credential.lookup_id] = (*pairs, (credential, narrowed))
        self._notify_watchers(held, snapshot)

    def find_credentials(
        self, lookup_id: LookupId
    ) -> tuple[tuple[Credential, TenantSnapshot], ...]:
        held = self._by_lookup.get(lookup_id, ())
        return tuple((credential, each.for_user(credential.user_id)) for credential, each in held)

    def derive_pepper(self, version: int) -> bytes:
        if version not in self._peppers:
            self._peppers[version] = derive_key(self._root_secret, f"key-pepper/{version}")
        return self._peppers[version]

    @contextmanager
    def watch_key(self, key_id: KeyId, on_end: Callable[[], object]) -> Iterator[None]:
        """Calls `on_end` when the key is revoked or its tenant is no longer active.

        Raises Busy: `too_many_connections`.
        """
        watchers = self._watchers[key_id]
        if len(watchers) >= self._max_watchers:
            raise TooManyRequests("too_many_connections", "This key has too many connections.")
        watchers.add(on_end)
        try:
            yield
        finally:
            watchers.discard(on_end)
            if not watchers:
                self._watchers.pop(key_id, None)

    def _remove_credentials(self, snapshot: TenantSnapshot) -> None:
        for credential in snapshot.credentials:
            pairs = self._by_lookup.get(credential.lookup_id, ())
            kept = tuple(pair for pair in pairs if pair[1].tenant_id != snapshot.tenant_id)
            if kept:
                self._by_lookup[credential.lookup_id] = kept
            else:
                self._by_lookup.pop(credential.lookup_id, None)

    def _notify_watchers(self, held: TenantSnapshot | None, new: TenantSnapshot) -> None:
        before = _in_force(held) if held is not None else set()
        for key_id in before - _in_force(new):
            for on_end in tuple(self._watchers.get(key_id, ())):
                on_end()


class _EffectiveSnapshots:
    """A snapshot with policy and budgets as they are for one user; who has the same shares it. Made
    when somebody comes: all of them at once would hold up the gateway at each new snapshot."""

    def __init__(self, snapshot: TenantSnapshot) -> None:
        self.tenant_id = snapshot.tenant_id
        self._snapshot = snapshot
        self._spending = SpendingByUser(snapshot.spending)
        self._policies: dict[tuple[int, ...], TenantPolicy] = {(): snapshot.policy}
        self._made: dict[tuple[tuple[int, ...], int], TenantSnapshot] = {}

    def for_user(self, user_id: UserId | None) -> TenantSnapshot:
        """`user_id`: None: a service key, which is in no team."""
        layers = () if user_id is None else self._snapshot.layers_of.get(user_id, ())
        spending = self._spending.for_user(user_id)
        key = (layers, id(spending))  # which lives as long as this does
        if key not in self._made:
            self._made[key] = msgspec.structs.replace(
                self._snapshot, policy=self._build_policy(layers), spending=spending
            )
        return self._made[key]

    def _build_policy(self, places: tuple[int, ...]) -> TenantPolicy:
        if places not in self._policies:
            layers = (self._snapshot.layers[place] for place in places)
            self._policies[places] = apply_overrides(self._snapshot.policy, layers)
        return self._policies[places]


def _in_force(snapshot: TenantSnapshot) -> set[KeyId]:
    if snapshot.status is not TenantStatus.ACTIVE:
        return set()
    return {each.key_id for each in snapshot.credentials if each.revoked_at_ms is None}
