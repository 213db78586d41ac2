"""Uploads: limits for a key, for a tenant and for all together."""

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


def _code(uploads: BodyQuota, **principal: Any) -> str:
    with pytest.raises(TooManyRequests) as refused:
        uploads.reserve(make_principal(**principal), 1)
    return refused.value.code


def test_a_key_may_have_so_much_and_no_more() -> None:
    uploads = BodyQuota()
    uploads.reserve(make_principal(key_id="one"), MAX_OF_KEY_BYTES)

    assert _code(uploads, key_id="one") == "too_many_requests"
    uploads.reserve(make_principal(key_id="other"), 1)


def test_a_tenant_has_no_more_by_more_keys() -> None:
    uploads = BodyQuota()
    for number in range(MAX_OF_TENANT_BYTES // STEP):
        uploads.reserve(make_principal(key_id=str(number)), STEP)

    assert _code(uploads, key_id="another") == "too_many_requests"
    uploads.reserve(make_principal(tenant_id=TenantId("neighbour"), key_id="theirs"), 1)


def test_all_together_are_bounded() -> None:
    uploads = BodyQuota()
    for number in range(MAX_TOTAL_BYTES // STEP):
        name = str(number)
        uploads.reserve(make_principal(tenant_id=TenantId(name), key_id="of " + name), STEP)

    assert _code(uploads, tenant_id="last", key_id="of last") == "gateway_at_capacity"


def test_what_was_let_go_may_come_again_and_is_forgotten() -> None:
    uploads, principal = BodyQuota(), make_principal()
    for _ in range(3):
        uploads.reserve(principal, MAX_OF_KEY_BYTES)
        uploads.release(principal, MAX_OF_KEY_BYTES)

    assert uploads.num_bytes == 0
