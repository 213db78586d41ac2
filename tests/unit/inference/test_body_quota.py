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

STEP = MAX_OF_KEY_BYTES


def _rejection_code(uploads: BodyQuota, **principal: Any) -> str:
    with pytest.raises(TooManyRequests) as rejected:
        uploads.reserve(make_principal(**principal), 1)
    return rejected.value.code


def test_the_bytes_of_a_key_are_limited() -> None:
    uploads = BodyQuota()
    uploads.reserve(make_principal(key_id="one"), MAX_OF_KEY_BYTES)

    assert _rejection_code(uploads, key_id="one") == "too_many_requests"
    uploads.reserve(make_principal(key_id="other"), 1)


def test_the_bytes_of_all_keys_of_a_tenant_are_limited() -> None:
    uploads = BodyQuota()
    for number in range(MAX_OF_TENANT_BYTES // STEP):
        uploads.reserve(make_principal(key_id=str(number)), STEP)

    assert _rejection_code(uploads, key_id="another") == "too_many_requests"
    uploads.reserve(make_principal(tenant_id=TenantId("neighbour"), key_id="theirs"), 1)


def test_the_total_bytes_are_limited() -> None:
    uploads = BodyQuota()
    for number in range(MAX_TOTAL_BYTES // STEP):
        name = str(number)
        uploads.reserve(make_principal(tenant_id=TenantId(name), key_id="of " + name), STEP)

    assert _rejection_code(uploads, tenant_id="last", key_id="of last") == "gateway_at_capacity"


def test_released_bytes_may_be_reserved_again() -> None:
    uploads, principal = BodyQuota(), make_principal()
    for _ in range(3):
        uploads.reserve(principal, MAX_OF_KEY_BYTES)
        uploads.release(principal, MAX_OF_KEY_BYTES)

    assert uploads.num_bytes == 0
