"""The compilation of a tenant's rows to its snapshot."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from caret.contracts.api_key import KeyKind
from caret.contracts.snapshot import TenantSnapshot, TenantStatus, encode_snapshot
from caret.foundation.clock import to_unix_ms
from caret.foundation.ids import KeyId, LookupId, TenantId, UserId
from tenants.fleet.snapshots.compiler import SnapshotKeyRow, TenantRow, compile_snapshot
from tenants.fleet.snapshots.platform_limits import PlatformLimits, apply_platform_limits
from tenants.identity.api_keys.row_writes import REVOKED_KEY_RETENTION
from tenants.policy.document import DEFAULT_POLICY

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
TENANT = TenantRow(
    tenant_id=TenantId("t"),
    slug="acme",
    version=7,
    status=TenantStatus.ACTIVE,
    cache_epoch=2,
)


def key(
    lookup_id: str = "Ab3dE6gH",
    *,
    expires_at: datetime | None = None,
    revoked_at: datetime | None = None,
    networks: tuple[str, ...] = (),
) -> SnapshotKeyRow:
    return SnapshotKeyRow(
        key_id=KeyId(lookup_id * 2),
        lookup_id=LookupId(lookup_id),
        digest=b"d" * 32,
        pepper_version=1,
        kind=KeyKind.DEVELOPER,
        owner_id=UserId("ada"),
        expires_at=expires_at,
        revoked_at=revoked_at,
        networks=networks,
    )


def snapshot(*keys: SnapshotKeyRow) -> TenantSnapshot:
    return compile_snapshot(tenant=TENANT, policy=DEFAULT_POLICY, keys=keys, now=NOW)


def test_the_tenant_is_copied() -> None:
    tenant_snapshot = snapshot()

    assert (tenant_snapshot.tenant_id, tenant_snapshot.slug, tenant_snapshot.version) == (
        "t",
        "acme",
        7,
    )
    assert (tenant_snapshot.status, tenant_snapshot.cache_epoch) == (TenantStatus.ACTIVE, 2)
    assert tenant_snapshot.policy == DEFAULT_POLICY


def test_an_active_key_has_no_end() -> None:
    (credential,) = snapshot(key()).credentials

    assert credential.expires_at_ms is None
    assert credential.revoked_at_ms is None
    assert credential.user_id == "ada"


def test_the_networks_of_a_key_are_copied() -> None:
    (credential,) = snapshot(key(networks=("192.0.2.0/24",))).credentials

    assert credential.networks == ("192.0.2.0/24",)


@pytest.mark.parametrize(("of_policy", "of_platform", "expected"), [(3, 5, 3), (5, 3, 3)])
def test_the_lower_limit_of_policy_and_platform_applies(
    of_policy: int, of_platform: int, expected: int
) -> None:
    policy = msgspec.structs.replace(DEFAULT_POLICY, max_concurrent_completions=of_policy)
    limits = PlatformLimits(of_platform, max_requests_per_minute=None)

    assert apply_platform_limits(policy, limits).max_concurrent_completions == expected


def test_ends_of_keys_are_unix_milliseconds() -> None:
    revoked_at, expires_at = NOW - timedelta(days=1), NOW + timedelta(days=1)

    (credential,) = snapshot(key(expires_at=expires_at, revoked_at=revoked_at)).credentials

    assert credential.expires_at_ms == to_unix_ms(expires_at)
    assert credential.revoked_at_ms == to_unix_ms(revoked_at)


def test_a_revoked_key_is_included_during_its_retention() -> None:
    included = key(revoked_at=NOW - REVOKED_KEY_RETENTION)

    assert len(snapshot(included).credentials) == 1


def test_a_revoked_key_is_left_out_after_its_retention() -> None:
    left_out = key(revoked_at=NOW - REVOKED_KEY_RETENTION - timedelta(seconds=1))

    assert snapshot(left_out).credentials == ()


def test_an_expired_key_is_left_out_after_its_retention() -> None:
    left_out = key(expires_at=NOW - REVOKED_KEY_RETENTION - timedelta(seconds=1))

    assert snapshot(left_out).credentials == ()


def test_equal_rows_in_another_order_give_equal_bytes() -> None:
    first, second = key("AAAAAAAA"), key("BBBBBBBB")

    assert encode_snapshot(snapshot(first, second)) == encode_snapshot(snapshot(second, first))
