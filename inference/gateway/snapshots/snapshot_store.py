"""The newest snapshots of tenants and API keys, in memory.

The store does not depend on Redis: a feed (`snapshot_feed`) adds snapshots and confirms that they
are fresh. Rules:
1. Only a newer snapshot replaces a snapshot.
2. If no confirmation comes for `max_age_s`, all callers are rejected: a revocation may be missing.
3. If a tenant's newer snapshot is unreadable for `max_age_s`, the tenant's callers are rejected.
4. A credential comes with the effective policy of its user, restricted by policy overrides, and
   with the budgets that apply to that user (`UserBudgets`).
5. Holders of resources for a key, such as connections, can be notified when the key ends.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from caret.contracts.api_key import Credential
from caret.contracts.policy import TenantPolicy
from caret.contracts.policy_override import apply_overrides
from caret.contracts.pricing import BudgetScope, SpendingLimits, decode_indexes, encode_indexes
from caret.contracts.snapshot import TenantSnapshot, TenantStatus
from caret.foundation.clock import Clock
from caret.foundation.crypto.key_derivation import derive_key
from caret.foundation.ids import KeyId, LookupId, TenantId, UserId
from inference.errors import TooManyRequests


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
        """Create a store without snapshots.

        `max_watchers` limits the simultaneous connections and HTTP completions of one key. `region`
        is the region of this gateway.
        """
        self.region = region
        self._root_secret = root_secret
        self._clock = clock
        self._max_age_s = max_age_s
        self._max_watchers = max_watchers
        self._unreadable_s: dict[TenantId, float] = {}  # monotonic time of the first failure
        self._confirmed_s: float | None = None  # monotonic; None: never confirmed
        self._snapshots: dict[TenantId, TenantSnapshot] = {}
        # Lookup IDs are random, so two tenants may have the same one. The digest decides.
        self._by_lookup: dict[LookupId, tuple[tuple[Credential, _EffectiveSnapshots], ...]] = {}
        self._dedicated_to: dict[str, frozenset[TenantId]] = {}  # by the name of a dedicated pool
        self._peppers: dict[int, bytes] = {}
        self._watchers: defaultdict[KeyId, set[Callable[[], object]]] = defaultdict(set)

    @property
    def versions(self) -> dict[TenantId, int]:
        return {tenant: snapshot.version for tenant, snapshot in self._snapshots.items()}

    @property
    def num_watchers(self) -> int:
        """The number of connections and HTTP completions of all keys."""
        return sum(len(watchers) for watchers in self._watchers.values())

    @property
    def age_s(self) -> float | None:
        """Seconds since all snapshots were last compared with Redis; None: never."""
        if self._confirmed_s is None:
            return None
        return self._clock.monotonic_s() - self._confirmed_s

    def is_fresh(self) -> bool:
        """Return whether all snapshots were compared with Redis within `max_age_s`."""
        confirmed_s = self._confirmed_s
        return (
            confirmed_s is not None and self._clock.monotonic_s() - confirmed_s <= self._max_age_s
        )

    def is_readable(self, tenant_id: TenantId) -> bool:
        """Return False if the tenant's newest snapshot has been unreadable for too long."""
        since_s = self._unreadable_s.get(tenant_id)
        return since_s is None or self._clock.monotonic_s() - since_s <= self._max_age_s

    def mark_unreadable(self, tenant_id: TenantId) -> bool:
        """Record that a newer snapshot is unreadable. Return whether this is the first time."""
        is_first = tenant_id not in self._unreadable_s
        self._unreadable_s.setdefault(tenant_id, self._clock.monotonic_s())
        return is_first

    def mark_synced(self) -> None:
        """Record that all snapshots have just been compared with Redis."""
        self._confirmed_s = self._clock.monotonic_s()

    def replace(self, snapshot: TenantSnapshot) -> None:
        """Store a newer snapshot, and notify the watchers of keys that are no longer active."""
        previous = self._snapshots.get(snapshot.tenant_id)
        if previous is not None and previous.version >= snapshot.version:
            return
        self._snapshots[snapshot.tenant_id] = snapshot
        self._unreadable_s.pop(snapshot.tenant_id, None)
        if previous is not None:
            self._remove_credentials(previous)
        self._dedicate_pools(previous, snapshot)
        effective = _EffectiveSnapshots(snapshot)
        for credential in snapshot.credentials:
            pairs = self._by_lookup.get(credential.lookup_id, ())
            self._by_lookup[credential.lookup_id] = (*pairs, (credential, effective))
        self._notify_watchers(previous, snapshot)

    def find_credentials(
        self, lookup_id: LookupId
    ) -> tuple[tuple[Credential, TenantSnapshot], ...]:
        """Return the credentials with this lookup ID, each with the snapshot for its user."""
        pairs = self._by_lookup.get(lookup_id, ())
        return tuple(
            (credential, effective.for_user(credential.user_id)) for credential, effective in pairs
        )

    def may_use_pool(self, pool: str, tenant_id: TenantId) -> bool:
        """Return False if the pool is dedicated to other tenants."""
        holders = self._dedicated_to.get(pool)
        return holders is None or tenant_id in holders

    def derive_pepper(self, version: int) -> bytes:
        """Return the secret that is mixed into the digests of API keys (see `digest_key`).

        It is derived from the installation's root secret. `version` is the `pepper_version` of a
        credential.
        """
        if version not in self._peppers:
            self._peppers[version] = derive_key(self._root_secret, f"key-pepper/{version}")
        return self._peppers[version]

    @contextmanager
    def watch_key(self, key_id: KeyId, on_end: Callable[[], object]) -> Iterator[None]:
        """Call `on_end` when the key is revoked or its tenant is no longer active.

        The code of TooManyRequests is `too_many_connections`. Raises TooManyRequests.
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
            remaining = tuple(
                (other, effective)
                for other, effective in pairs
                if effective.tenant_id != snapshot.tenant_id
            )
            if remaining:
                self._by_lookup[credential.lookup_id] = remaining
            else:
                self._by_lookup.pop(credential.lookup_id, None)

    def _dedicate_pools(self, previous: TenantSnapshot | None, snapshot: TenantSnapshot) -> None:
        before = frozenset() if previous is None else previous.dedicated_pools
        for pool in before | snapshot.dedicated_pools:
            other_tenants = self._dedicated_to.pop(pool, frozenset()) - {snapshot.tenant_id}
            holders = (
                other_tenants | {snapshot.tenant_id}
                if pool in snapshot.dedicated_pools
                else other_tenants
            )
            if holders:
                self._dedicated_to[pool] = holders

    def _notify_watchers(self, previous: TenantSnapshot | None, snapshot: TenantSnapshot) -> None:
        previous_keys = _list_active_keys(previous) if previous is not None else set()
        for key_id in previous_keys - _list_active_keys(snapshot):
            for on_end in tuple(self._watchers.get(key_id, ())):
                on_end()


class _EffectiveSnapshots:
    """The snapshots of one tenant with the effective policy and budgets of each user.

    Users with the same overrides and budgets share one snapshot. A snapshot is built when it is
    first used. Building all of them at once would block the gateway at every new snapshot.
    """

    def __init__(self, snapshot: TenantSnapshot) -> None:
        self.tenant_id = snapshot.tenant_id
        self._snapshot = snapshot
        self._user_budgets = UserBudgets(snapshot.spending)
        # By the indexes of overrides:
        self._policies: dict[tuple[int, ...], TenantPolicy] = {(): snapshot.policy}
        # By the indexes of overrides and the `id()` of the budgets' object:
        self._snapshots_by_variant: dict[tuple[tuple[int, ...], int], TenantSnapshot] = {}

    def for_user(self, user_id: UserId | None) -> TenantSnapshot:
        """Return the snapshot of a user, or of a service key (None), which has no team."""
        indexes = () if user_id is None else self._snapshot.override_indexes.get(user_id, ())
        spending = self._user_budgets.for_user(user_id)
        # `_user_budgets` keeps the object, so that its id stays valid.
        variant = (indexes, id(spending))
        if variant not in self._snapshots_by_variant:
            self._snapshots_by_variant[variant] = msgspec.structs.replace(
                self._snapshot, policy=self._build_policy(indexes), spending=spending
            )
        return self._snapshots_by_variant[variant]

    def _build_policy(self, indexes: tuple[int, ...]) -> TenantPolicy:
        if indexes not in self._policies:
            overrides = (self._snapshot.overrides[index] for index in indexes)
            self._policies[indexes] = apply_overrides(self._snapshot.policy, overrides)
        return self._policies[indexes]


def _list_active_keys(snapshot: TenantSnapshot) -> set[KeyId]:
    if snapshot.status is not TenantStatus.ACTIVE:
        return set()
    return {
        credential.key_id for credential in snapshot.credentials if credential.revoked_at_ms is None
    }


class UserBudgets:
    """Finds the budgets that apply to each user of a tenant."""

    def __init__(self, spending: SpendingLimits) -> None:
        self._spending: Final = spending
        # Encoded indexes of the budgets of teams and users:
        self._indexes_of_user: Final = _read_previous_format(spending) or spending.budgets_of
        self._tenant_indexes: Final = frozenset(
            index
            for index, budget in enumerate(spending.budgets)
            if budget.scope is BudgetScope.TENANT
        )
        self._limits_by_indexes: Final[dict[bytes, SpendingLimits]] = {}

    def for_user(self, user_id: UserId | None) -> SpendingLimits:
        """Return the prices and budgets of a user, or of a service key (None), which has no team.

        Users with the same budgets get the same object. It contains no user IDs.
        """
        encoded_indexes = b"" if user_id is None else self._indexes_of_user.get(user_id, b"")
        if encoded_indexes not in self._limits_by_indexes:
            self._limits_by_indexes[encoded_indexes] = self._decode(encoded_indexes)
        return self._limits_by_indexes[encoded_indexes]

    def _decode(self, encoded_indexes: bytes) -> SpendingLimits:
        user_indexes = decode_indexes(encoded_indexes, num_indexes=len(self._spending.budgets))
        budgets = [
            self._spending.budgets[index]
            for index in sorted(self._tenant_indexes.union(user_indexes))
        ]
        return SpendingLimits(
            self._spending.prices,
            tuple(msgspec.structs.replace(budget, users=()) for budget in budgets),
        )


def _read_previous_format(spending: SpendingLimits) -> dict[UserId, bytes]:
    """Read the older format, where each budget lists its users. Return encoded indexes by user."""
    indexes: defaultdict[UserId, set[int]] = defaultdict(set)
    for index, budget in enumerate(spending.budgets):
        if budget.scope is not BudgetScope.TENANT:
            for user_id in budget.users:
                indexes[user_id].add(index)
    return {user_id: encode_indexes(user_indexes) for user_id, user_indexes in indexes.items()}
