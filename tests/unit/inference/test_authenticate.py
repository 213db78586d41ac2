"""The stage authenticate: valid callers, and the errors of rejected ones."""

import hmac
import string
import zlib
from typing import Any

import msgspec
import pytest

from caret.contracts.api_key import KeyKind, ParsedKey, generate_key, parse_key
from caret.contracts.snapshot import TenantSnapshot, TenantStatus
from caret.foundation.ids import TenantId
from inference.completion.request import Principal
from inference.errors import ForbiddenRequest, UnauthenticatedRequest
from inference.gateway.authenticate import authenticate
from inference.gateway.snapshots.snapshot_store import SnapshotStore
from tests.fakes.clock import FakeClock
from tests.fakes.tenants import (
    ACME,
    GLOBEX,
    GUS,
    ROOT_SECRET,
    make_credential,
    make_snapshot,
)

NOW_MS = 1_000_000
KEY = generate_key(KeyKind.DEVELOPER)
BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
# A key is "cpk_live_", a lookup ID of eight characters, a secret, and a checksum of six digits.
SECRET_START, CHECKSUM_DIGITS = len("cpk_live_") + 8, 6


def _make_store(*snapshots: TenantSnapshot) -> SnapshotStore:
    snapshot_store = SnapshotStore(root_secret=ROOT_SECRET, clock=FakeClock(), max_age_s=300)
    for snapshot in snapshots:
        snapshot_store.replace(snapshot)
    snapshot_store.mark_synced()
    return snapshot_store


def _authenticate(
    snapshot_store: SnapshotStore, key_text: str | None, *, address: str | None = None
) -> Principal:
    return authenticate(snapshot_store, key_text, now_ms=NOW_MS, address=address)


def _rejection(
    snapshot_store: SnapshotStore, key_text: str | None, *, address: str | None = None
) -> UnauthenticatedRequest:
    """Return the error with which this key is rejected."""
    with pytest.raises(UnauthenticatedRequest) as rejected:
        _authenticate(snapshot_store, key_text, address=address)
    return rejected.value


def _key_with_same_lookup_id(key: ParsedKey) -> ParsedKey:
    """Return another well-formed key with the same lookup ID."""
    secret = generate_key(KeyKind.DEVELOPER).text[SECRET_START:-CHECKSUM_DIGITS]
    body = f"cpk_live_{key.lookup_id}{secret}"
    checksum, digits = zlib.crc32(body.encode()), ""  # the checksum is written in base 62
    for _ in range(CHECKSUM_DIGITS):
        checksum, digit = divmod(checksum, 62)
        digits = BASE62[digit] + digits
    other_key = parse_key(body + digits)
    assert other_key is not None
    return other_key


def test_a_valid_key_is_authenticated_as_its_tenants_principal() -> None:
    principal = _authenticate(_make_store(make_snapshot(make_credential(KEY))), KEY.text)

    assert principal.snapshot.tenant_id == ACME
    assert principal.credential.lookup_id == KEY.lookup_id


@pytest.mark.parametrize("key_text", [None, ""])
def test_a_request_without_a_key_is_rejected(key_text: str | None) -> None:
    error = _rejection(_make_store(), key_text)

    assert (error.code, error.http_status) == ("missing_api_key", 401)


@pytest.mark.parametrize(
    "key_text",
    ["secret", KEY.text[:-1], KEY.text + "\n", " " + KEY.text],
    ids=["not a key", "truncated", "trailing line break", "leading space"],
)
def test_a_malformed_key_is_invalid(key_text: str) -> None:
    snapshot_store = _make_store(make_snapshot(make_credential(KEY)))

    assert _rejection(snapshot_store, key_text).code == "invalid_api_key"


def test_a_key_with_a_wrong_checksum_is_invalid() -> None:
    last_digit = "0" if KEY.text[-1] != "0" else "1"
    snapshot_store = _make_store(make_snapshot(make_credential(KEY)))

    assert _rejection(snapshot_store, KEY.text[:-1] + last_digit).code == "invalid_api_key"


def test_an_unknown_key_is_invalid() -> None:
    snapshot_store = _make_store(make_snapshot(make_credential(KEY)))

    error = _rejection(snapshot_store, generate_key(KeyKind.DEVELOPER).text)

    assert (error.code, error.http_status) == ("invalid_api_key", 401)


def test_a_wrong_key_with_a_known_lookup_id_is_invalid() -> None:
    snapshot_store = _make_store(make_snapshot(make_credential(KEY)))

    assert _rejection(snapshot_store, _key_with_same_lookup_id(KEY).text).code == "invalid_api_key"


@pytest.mark.parametrize("num_digests", [0, 1, 2])  # of the lookup ID; 2: the key is being rotated
def test_every_wrong_key_is_compared_with_two_digests(
    monkeypatch: pytest.MonkeyPatch, num_digests: int
) -> None:
    other_keys = [_key_with_same_lookup_id(KEY) for _ in range(num_digests)]
    snapshot_store = _make_store(make_snapshot(*map(make_credential, other_keys)))
    compared_digests: list[bytes] = []
    compare_digest = hmac.compare_digest

    def record_and_compare(presented: bytes, stored: bytes) -> bool:
        compared_digests.append(stored)
        return compare_digest(presented, stored)

    monkeypatch.setattr(hmac, "compare_digest", record_and_compare)

    assert _rejection(snapshot_store, KEY.text).code == "invalid_api_key"
    # Always two, so that the response time does not reveal whether the lookup ID exists.
    assert len(compared_digests) == 2


def test_a_revoked_key_is_rejected_as_revoked() -> None:
    snapshot_store = _make_store(make_snapshot(make_credential(KEY, revoked_at_ms=1)))

    assert _rejection(snapshot_store, KEY.text).code == "revoked_api_key"


def test_a_wrong_key_does_not_reveal_that_the_right_one_was_revoked() -> None:
    snapshot_store = _make_store(make_snapshot(make_credential(KEY, revoked_at_ms=1)))

    assert _rejection(snapshot_store, _key_with_same_lookup_id(KEY).text).code == "invalid_api_key"


@pytest.mark.parametrize("expires_at_ms", [NOW_MS, NOW_MS - 1])
def test_an_expired_key_is_rejected_as_expired(expires_at_ms: int) -> None:
    snapshot_store = _make_store(make_snapshot(make_credential(KEY, expires_at_ms=expires_at_ms)))

    assert _rejection(snapshot_store, KEY.text).code == "expired_api_key"


def test_a_key_is_valid_until_it_expires() -> None:
    snapshot_store = _make_store(make_snapshot(make_credential(KEY, expires_at_ms=NOW_MS + 1)))

    _authenticate(snapshot_store, KEY.text)  # raises no error


@pytest.mark.parametrize("status", sorted(set(TenantStatus) - {TenantStatus.ACTIVE}))
def test_the_error_for_an_inactive_tenant_has_its_status_and_says_what_to_do(
    status: TenantStatus,
) -> None:
    snapshot_store = _make_store(make_snapshot(make_credential(KEY), status=status))

    error = _rejection(snapshot_store, KEY.text)

    assert error.code == "tenant_suspended"  # the same code for each of these statuses
    assert f"This tenant is {status.value}" in error.message
    assert any(step in error.message for step in ("ask an owner", "Ask an owner", "Remove this"))


def test_a_trial_ends_at_its_time_and_the_error_says_what_to_do() -> None:
    snapshot = make_snapshot(make_credential(KEY))
    ended_trial = msgspec.structs.replace(snapshot, trial_ends_at_ms=NOW_MS)
    running_trial = msgspec.structs.replace(snapshot, trial_ends_at_ms=NOW_MS + 1)

    _authenticate(_make_store(running_trial), KEY.text)
    with pytest.raises(ForbiddenRequest) as exc_info:
        _authenticate(_make_store(ended_trial), KEY.text)

    assert exc_info.value.code == "trial_ended"
    assert "Ask an owner" in exc_info.value.message


def test_a_gateway_with_stale_snapshots_rejects_all_keys() -> None:
    snapshot_store = SnapshotStore(root_secret=ROOT_SECRET, clock=FakeClock(), max_age_s=300)
    snapshot_store.replace(make_snapshot(make_credential(KEY)))  # but no `mark_synced`

    error = _rejection(snapshot_store, KEY.text)

    assert (error.code, error.http_status) == ("snapshots_stale", 503)


@pytest.mark.parametrize("tenant_id", [ACME, GLOBEX])
def test_the_digest_decides_between_keys_of_two_tenants_with_the_same_lookup_id(
    tenant_id: TenantId,
) -> None:
    keys = {ACME: KEY, GLOBEX: _key_with_same_lookup_id(KEY)}
    snapshot_store = _make_store(
        make_snapshot(make_credential(keys[ACME])),
        make_snapshot(make_credential(keys[GLOBEX], user_id=GUS), tenant_id=GLOBEX),
    )

    principal = _authenticate(snapshot_store, keys[tenant_id].text)

    assert principal.snapshot.tenant_id == tenant_id


def test_a_key_with_another_pepper_version_is_valid() -> None:
    snapshot_store = _make_store(make_snapshot(make_credential(KEY, pepper_version=2)))

    assert _authenticate(snapshot_store, KEY.text).snapshot.tenant_id == ACME


@pytest.mark.parametrize(
    "snapshot",
    [
        make_snapshot(),
        make_snapshot(make_credential(KEY, revoked_at_ms=1)),
        make_snapshot(make_credential(KEY, expires_at_ms=1)),
        make_snapshot(make_credential(KEY), status=TenantStatus.SUSPENDED),
    ],
    ids=["unknown", "revoked", "expired", "suspended"],
)
def test_an_error_never_contains_the_key(snapshot: TenantSnapshot) -> None:
    error = _rejection(_make_store(snapshot), KEY.text)

    text = f"{error!r} {error} {error.message}"
    assert KEY.text not in text
    assert KEY.text[SECRET_START:] not in text


OFFICE = "192.0.2.0/24"


def _make_restricted_store(**fields: Any) -> SnapshotStore:
    """Return a store in which KEY is valid only in the network OFFICE."""
    return _make_store(make_snapshot(make_credential(KEY, networks=(OFFICE,), **fields)))


@pytest.mark.parametrize("address", ["192.0.2.7", "::ffff:192.0.2.7"])
def test_a_restricted_key_is_valid_within_its_networks(address: str) -> None:
    principal = _authenticate(_make_restricted_store(), KEY.text, address=address)

    assert principal.credential.lookup_id == KEY.lookup_id


@pytest.mark.parametrize(
    "address", ["198.51.100.7", "::ffff:198.51.100.7", "2001:db8::7", None, "x"]
)
def test_outside_its_networks_a_restricted_key_is_rejected_like_a_wrong_key(
    address: str | None,
) -> None:
    snapshot_store = _make_restricted_store()
    wrong_key = _key_with_same_lookup_id(KEY)
    wrong_key_error = _rejection(snapshot_store, wrong_key.text, address=address)

    error = _rejection(snapshot_store, KEY.text, address=address)

    assert (error.code, error.message) == ("invalid_api_key", wrong_key_error.message)
    assert error.http_status == wrong_key_error.http_status


@pytest.mark.parametrize("end", [{"revoked_at_ms": 5}, {"expires_at_ms": 5}])
def test_outside_its_networks_a_restricted_key_does_not_reveal_that_it_was_revoked_or_expired(
    end: dict[str, Any],
) -> None:
    snapshot_store = _make_restricted_store(**end)

    outside_error = _rejection(snapshot_store, KEY.text, address="198.51.100.7")
    office_error = _rejection(snapshot_store, KEY.text, address="192.0.2.7")

    assert outside_error.code == "invalid_api_key"
    assert office_error.code != "invalid_api_key"


def test_both_secrets_of_a_rotated_key_are_valid_until_the_old_one_expires() -> None:
    new_key = _key_with_same_lookup_id(KEY)
    # The credentials of both secrets have the same key ID.
    old_credential = make_credential(KEY, expires_at_ms=NOW_MS + 1)
    expired_credential = make_credential(KEY, expires_at_ms=NOW_MS)
    new_credential = make_credential(new_key)

    store_before = _make_store(make_snapshot(old_credential, new_credential))
    for text in (KEY.text, new_key.text):
        assert _authenticate(store_before, text).credential.key_id == new_credential.key_id

    store_after = _make_store(make_snapshot(expired_credential, new_credential))
    assert _rejection(store_after, KEY.text).code == "expired_api_key"
    credential = _authenticate(store_after, new_key.text).credential
    assert credential.key_id == new_credential.key_id


def test_a_tenant_pinned_to_another_region_is_rejected() -> None:
    snapshot = msgspec.structs.replace(make_snapshot(make_credential(KEY)), region="west")

    with pytest.raises(ForbiddenRequest) as rejected:
        _authenticate(_make_store(snapshot), KEY.text)

    assert rejected.value.code == "region_not_allowed"


def test_a_tenant_pinned_to_this_region_is_accepted() -> None:
    snapshot_store = _make_store()
    snapshot = msgspec.structs.replace(
        make_snapshot(make_credential(KEY)), region=snapshot_store.region
    )
    snapshot_store.replace(snapshot)

    principal = _authenticate(snapshot_store, KEY.text)

    assert principal.snapshot.region == snapshot_store.region
