"""The two secrets of a rotated API key. The old one stays valid for a while."""

import hmac
from datetime import UTC, datetime, timedelta

import pytest

from caret.contracts.api_key import KeyKind, generate_key
from tenants.identity.api_keys.key_secrets import list_secrets, match_secret
from tenants.models import ApiKey

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("key_ends_at", "old_secret_ends_at"),
    [(None, NOON + HOUR), (NOON, NOON), (NOON + 2 * HOUR, NOON + HOUR)],
)
def test_the_old_secret_ends_with_its_overlap_or_with_its_key(
    key_ends_at: datetime | None, old_secret_ends_at: datetime
) -> None:
    key = ApiKey(
        digest=b"new",
        pepper_version=1,
        expires_at=key_ends_at,
        previous_digest=b"old",
        previous_pepper_version=1,
        previous_ends_at=NOON + HOUR,
    )

    assert [secret.expires_at for secret in list_secrets(key)] == [key_ends_at, old_secret_ends_at]


UNROTATED = ApiKey(digest=bytes(32), pepper_version=1)
ROTATED = ApiKey(
    digest=bytes(32),
    pepper_version=1,
    previous_digest=bytes(32),
    previous_pepper_version=1,
    previous_ends_at=NOON,
)


@pytest.mark.parametrize("rows", [[], [UNROTATED], [ROTATED]], ids=["unknown", "known", "rotated"])
def test_any_wrong_key_is_compared_with_as_many_digests(
    monkeypatch: pytest.MonkeyPatch, rows: list[ApiKey]
) -> None:
    compared_digests: list[bytes] = []
    compare_digest = hmac.compare_digest

    def record_and_compare(presented: bytes, stored: bytes) -> bool:
        compared_digests.append(stored)
        return compare_digest(presented, stored)

    monkeypatch.setattr(hmac, "compare_digest", record_and_compare)

    assert match_secret(generate_key(KeyKind.SERVICE), rows) is None
    assert len(compared_digests) == 2
