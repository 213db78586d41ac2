"""The bytes of unfinished request bodies are limited for a key, for a tenant and in total."""

from typing import Any

import pytest

from caret.foundation.ids import TenantId
from inference.errors import TooManyRequests
from inference.gateway.rate_limits.body_quota import (
    MAX_OF_KEY_BYTES,
    MAX_OF_TENANT_BYTES,
    MAX_TOTAL_BYTES,
    BodyQuota,
)
from tests.fakes.tenants import make_principal


def _rejection_code(quota: BodyQuota, **principal: Any) -> str:
    """Return the code of the error for one more byte of this principal."""
    with pytest.raises(TooManyRequests) as rejected:
        quota.reserve(make_principal(**principal), 1)
    return rejected.value.code


def test_the_bytes_of_a_key_are_limited() -> None:
    quota = BodyQuota()
    quota.reserve(make_principal(key_id="one"), MAX_OF_KEY_BYTES)

    assert _rejection_code(quota, key_id="one") == "too_many_requests"
    quota.reserve(make_principal(key_id="other"), 1)  # raises no error


def test_the_bytes_of_all_keys_of_a_tenant_are_limited() -> None:
    quota = BodyQuota()
    for number in range(MAX_OF_TENANT_BYTES // MAX_OF_KEY_BYTES):
        quota.reserve(make_principal(key_id=f"key-{number}"), MAX_OF_KEY_BYTES)

    assert _rejection_code(quota, key_id="another") == "too_many_requests"
    neighbour = make_principal(tenant_id=TenantId("neighbour"), key_id="theirs")
    quota.reserve(neighbour, 1)  # raises no error


def test_the_total_bytes_are_limited() -> None:
    quota = BodyQuota()
    for number in range(MAX_TOTAL_BYTES // MAX_OF_KEY_BYTES):
        tenant_id = TenantId(f"tenant-{number}")
        principal = make_principal(tenant_id=tenant_id, key_id=f"key-{number}")
        quota.reserve(principal, MAX_OF_KEY_BYTES)

    assert _rejection_code(quota, tenant_id="last", key_id="last-key") == "gateway_at_capacity"


def test_released_bytes_may_be_reserved_again() -> None:
    quota, principal = BodyQuota(), make_principal()

    for _ in range(3):
        quota.reserve(principal, MAX_OF_KEY_BYTES)
        quota.release(principal, MAX_OF_KEY_BYTES)

    assert quota.num_bytes == 0
