"""Compilation of snapshots from rows. Knows neither the database nor Redis.

`caret.contracts.snapshot` and `caret.contracts.api_key` explain the fields that are not explained
here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from caret.contracts.api_key import Credential, KeyKind
from caret.contracts.policy import Mode, TenantPolicy, Tier
from caret.contracts.pricing import SpendingLimits
from caret.contracts.snapshot import SCHEMA, TenantSnapshot, TenantStatus
from caret.foundation.clock import to_unix_ms
from caret.foundation.ids import KeyId, LookupId, TenantId, UserId
from tenants.fleet.snapshots.overrides import NO_OVERRIDES, OverrideAssignment
from tenants.identity.api_keys.row_writes import REVOKED_KEY_RETENTION

NO_SPENDING: Final = SpendingLimits()


@dataclass(frozen=True, slots=True)
class PoolsAndModels:
    """The tenant's pools and models, as the snapshot contains them."""

    pools: Mapping[Tier, Mapping[str, str]] = field(default_factory=dict)  # by tier and language
    dedicated: frozenset[str] = frozenset()  # pools that serve no other tenant
    # The pools of each offered model, by tier and model.
    models: Mapping[Tier, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)


NO_POOLS: Final = PoolsAndModels()


@dataclass(frozen=True, slots=True)
class TenantRow:
    tenant_id: TenantId
    slug: str
    version: int
    status: TenantStatus
    cache_epoch: int
    region: str | None = None  # the only region that serves the tenant; None: any region
    serving: PoolsAndModels = NO_POOLS
    trial_ends_at: datetime | None = None  # completions are refused from then on; None: no trial


@dataclass(frozen=True, slots=True)
class SnapshotKeyRow:
    """A key with one of its secrets. A rotated key may have two secrets, and so two rows."""

    key_id: KeyId
    lookup_id: LookupId
    digest: bytes
    pepper_version: int
    kind: KeyKind
    owner_id: UserId | None  # None: a service key
    expires_at: datetime | None  # None: never
    revoked_at: datetime | None  # None: in force
    networks: tuple[str, ...] = ()  # allowed source networks; empty: any
    modes: frozenset[Mode] = frozenset(Mode)
    keeps_content: bool = False  # content capture: the owner consents, and the tenant allows it


def compile_snapshot(
    *,
    tenant: TenantRow,
    policy: TenantPolicy,
    keys: Iterable[SnapshotKeyRow],
    now: datetime,
    spending: SpendingLimits = NO_SPENDING,
    assignment: OverrideAssignment = NO_OVERRIDES,
) -> TenantSnapshot:
    """Compile a snapshot.

    Keys that ended more than REVOKED_KEY_RETENTION ago are left out. Credentials are sorted, so
    that equal rows give equal bytes.
    """
    remembered_since = now - REVOKED_KEY_RETENTION
    remembered_keys = (key for key in keys if not _is_forgotten(key, remembered_since))
    return TenantSnapshot(
        schema=SCHEMA,
        tenant_id=tenant.tenant_id,
        slug=tenant.slug,
        version=tenant.version,
        status=tenant.status,
        cache_epoch=tenant.cache_epoch,
        policy=policy,
        credentials=tuple(_to_credential(key) for key in sorted(remembered_keys, key=_sort_key)),
        spending=spending,
        overrides=assignment.overrides,
        override_indexes=dict(assignment.override_indexes),
        region=tenant.region,
        pools={tier: dict(by_language) for tier, by_language in tenant.serving.pools.items()},
        dedicated_pools=tenant.serving.dedicated,
        models={tier: dict(by_model) for tier, by_model in tenant.serving.models.items()},
        trial_ends_at_ms=None if tenant.trial_ends_at is None else to_unix_ms(tenant.trial_ends_at),
    )


def _sort_key(key: SnapshotKeyRow) -> tuple[str, bytes]:
    return key.lookup_id, key.digest


def _is_forgotten(key: SnapshotKeyRow, remembered_since: datetime) -> bool:
    """Return whether the key expired or was revoked before `remembered_since`."""
    ends = [end for end in (key.revoked_at, key.expires_at) if end is not None]
    return bool(ends) and min(ends) < remembered_since


def _to_credential(key: SnapshotKeyRow) -> Credential:
    return Credential(
        key_id=key.key_id,
        lookup_id=key.lookup_id,
        digest=key.digest,
        pepper_version=key.pepper_version,
        kind=key.kind,
        user_id=key.owner_id,
        expires_at_ms=None if key.expires_at is None else to_unix_ms(key.expires_at),
        revoked_at_ms=None if key.revoked_at is None else to_unix_ms(key.revoked_at),
        networks=key.networks,
        modes=None if key.modes == frozenset(Mode) else key.modes,
        keeps_content=key.keeps_content,
    )
