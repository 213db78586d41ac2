"""Policy changes that require a confirmation."""

from typing import Any

import pytest
from msgspec.structs import replace

from caret.contracts.policy import ContentCapturePolicy
from tenants.policy.diff import is_destructive
from tenants.policy.document import DEFAULT_POLICY

CAPTURE = ContentCapturePolicy("tenant-1", retention_days=30, training=True)


@pytest.mark.parametrize(
    ("current_fields", "proposed_fields"),
    [
        ({"content_capture": CAPTURE}, {"content_capture": None}),
        ({"content_capture": CAPTURE}, {"content_capture": replace(CAPTURE, retention_days=29)}),
        ({"content_capture": CAPTURE}, {"content_capture": replace(CAPTURE, training=False)}),
        ({"retrieval": ("app", "lib")}, {"retrieval": ("app",)}),
        ({}, {"retention_days": {"usage_records": 31}}),
        ({"retention_days": {"usage_records": 4000}}, {}),
        ({}, {"revoke_idle_keys_after_days": 365}),
        ({"revoke_idle_keys_after_days": 30}, {"revoke_idle_keys_after_days": 29}),
        ({"is_mfa_required": True}, {"is_mfa_required": False}),
    ],
)
def test_a_destructive_change_needs_confirmation_and_its_reverse_does_not(
    current_fields: dict[str, Any], proposed_fields: dict[str, Any]
) -> None:
    before, after = (
        replace(DEFAULT_POLICY, **current_fields),
        replace(DEFAULT_POLICY, **proposed_fields),
    )

    assert is_destructive(current=before, proposed=after)
    assert not is_destructive(current=after, proposed=before)


@pytest.mark.parametrize(
    "proposed_fields",
    [
        {},
        {"features": frozenset()},
        {"content_exclusion": {"*": ("**/.env",)}},
        {"max_key_lifetime_days": 1},
        {"content_capture": CAPTURE},
    ],
)
def test_other_changes_need_no_confirmation(proposed_fields: dict[str, Any]) -> None:
    assert not is_destructive(
        current=DEFAULT_POLICY, proposed=replace(DEFAULT_POLICY, **proposed_fields)
    )
