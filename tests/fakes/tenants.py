"""Tenants as the data plane sees them, without a database: acme, and globex as another tenant."""

from typing import Any, Final

import msgspec

from caret.contracts.api_key import Credential, KeyKind, ParsedKey, digest_key, generate_key
from caret.contracts.policy import Isolation, Mode, TenantPolicy
from caret.contracts.pricing import SpendingLimits
from caret.contracts.snapshot import SCHEMA, TenantSnapshot, TenantStatus
from caret.foundation.crypto.key_derivation import derive_key
from caret.foundation.ids import KeyId, TenantId, UserId
from inference.completion.request import Principal
from inference.gateway.snapshots.snapshot_store import UserBudgets

ROOT_SECRET: Final = bytes(range(32))
ACME: Final = TenantId("0199aaaa-0000-7000-8000-000000000001")
GLOBEX: Final = TenantId("0199bbbb-0000-7000-8000-000000000002")
# Users: Ada and Alice of acme, Gus of globex.
ADA: Final = UserId("0199aaaa-0000-7000-8000-00000000000a")
ALICE: Final = UserId("0199aaaa-0000-7000-8000-00000000000b")
GUS: Final = UserId("0199bbbb-0000-7000-8000-00000000000c")
NO_SPENDING: Final = SpendingLimits()
ALL_MODES: Final = frozenset(Mode)


def make_policy(
    *,
    features: frozenset[Mode] = ALL_MODES,
    content_exclusion: dict[str, tuple[str, ...]] | None = None,
    max_concurrent_completions: int = 100,
    isolation: Isolation = Isolation.SHARED,
    **fields: Any,
) -> TenantPolicy:
    return TenantPolicy(
        features=features,
        content_exclusion=content_exclusion or {},
        max_concurrent_completions=max_concurrent_completions,
        isolation=isolation,
        **fields,
    )


def make_credential(
    key: ParsedKey,
    *,
    key_id: str = "key-1",
    user_id: UserId | None = ADA,
    expires_at_ms: int | None = None,
    revoked_at_ms: int | None = None,
    pepper_version: int = 1,
    **fields: Any,
) -> Credential:
    pepper = derive_key(ROOT_SECRET, f"key-pepper/{pepper_version}")
    return Credential(
        key_id=KeyId(key_id),
        lookup_id=key.lookup_id,
        digest=digest_key(pepper, key),
        pepper_version=pepper_version,
        kind=KeyKind.DEVELOPER if user_id else KeyKind.SERVICE,
        user_id=user_id,
        expires_at_ms=expires_at_ms,
        revoked_at_ms=revoked_at_ms,
        **fields,
    )


def make_snapshot(
    *credentials: Credential,
    tenant_id: TenantId = ACME,
    version: int = 1,
    status: TenantStatus = TenantStatus.ACTIVE,
    cache_epoch: int = 0,
    policy: TenantPolicy | None = None,
    spending: SpendingLimits = NO_SPENDING,
) -> TenantSnapshot:
    return TenantSnapshot(
        schema=SCHEMA,
        tenant_id=tenant_id,
        slug="acme" if tenant_id == ACME else "globex",
        version=version,
        status=status,
        cache_epoch=cache_epoch,
        policy=policy or make_policy(),
        credentials=credentials,
        spending=spending,
    )


def make_principal(
    *,
    tenant_id: TenantId = ACME,
    user_id: UserId | None = ADA,
    key_id: str = "key-1",
    policy: TenantPolicy | None = None,
    cache_epoch: int = 0,
    spending: SpendingLimits = NO_SPENDING,
    **fields: Any,
) -> Principal:
    kind = KeyKind.DEVELOPER if user_id else KeyKind.SERVICE
    credential = make_credential(generate_key(kind), key_id=key_id, user_id=user_id, **fields)
    snapshot = make_snapshot(
        credential,
        tenant_id=tenant_id,
        policy=policy,
        cache_epoch=cache_epoch,
        spending=spending,
    )
    return Principal(credential=credential, snapshot=_add_budgets(snapshot, user_id))


def _add_budgets(snapshot: TenantSnapshot, user_id: UserId | None) -> TenantSnapshot:
    """Return the snapshot with the user's budgets, as SnapshotStore does."""
    spending = UserBudgets(snapshot.spending).for_user(user_id)
    return msgspec.structs.replace(snapshot, spending=spending)
