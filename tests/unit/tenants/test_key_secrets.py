"""The validity of the two secrets of a rotated API key. The old one is valid for an overlap."""

from datetime import UTC, datetime, timedelta

import pytest

from tenants.identity.api_keys.key_secrets import list_secrets
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
