"""Policy changes that require a confirmation."""

from typing import Any

import pytest
from msgspec.structs import replace

from caret.contracts.policy import ContentCapturePolicy
from tenants.policy.diff import is_destructive
from tenants.policy.document import DEFAULT_POLICY

KEPT = ContentCapturePolicy("tenant-1", retention_days=30, training=True)


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        ({"telemetry": KEPT}, {"telemetry": None}),
        ({"telemetry": KEPT}, {"telemetry": replace(KEPT, retention_days=29)}),
        ({"telemetry": KEPT}, {"telemetry": replace(KEPT, training=False)}),
        ({"retrieval": ("app", "lib")}, {"retrieval": ("app",)}),
        ({}, {"retention_days": {"usage_records": 31}}),
        ({"retention_days": {"usage_records": 4000}}, {}),
        ({}, {"revoke_idle_keys_after_days": 365}),
        ({"revoke_idle_keys_after_days": 30}, {"revoke_idle_keys_after_days": 29}),
        ({"is_mfa_required": True}, {"is_mfa_required": False}),
    ],
)
def test_what_destroys_or_opens_is_grave_and_its_way_back_is_not(
    held: dict[str, Any], wanted: dict[str, Any]
) -> None:
    before, after = replace(DEFAULT_POLICY, **held), replace(DEFAULT_POLICY, **wanted)

    assert is_destructive(held=before, wanted=after)
    assert not is_destructive(held=after, wanted=before)


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"features": frozenset()},
        {"content_exclusion": {"*": ("**/.env",)}},
        {"max_key_lifetime_days": 1},
        {"telemetry": KEPT},
    ],
)
def test_the_rest_is_not(wanted: dict[str, Any]) -> None:
    assert not is_destructive(held=DEFAULT_POLICY, wanted=replace(DEFAULT_POLICY, **wanted))
