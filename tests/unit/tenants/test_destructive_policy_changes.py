"""Policy changes that require a confirmation."""

from typing import Any

import pytest
from msgspec.structs import replace

from caret.contracts.policy import ContentCapturePolicy
from tenants.policy.diff import is_destructive
from tenants.policy.document import DEFAULT_POLICY

CAPTURE = ContentCapturePolicy("tenant-1", retention_days=30, training=True)


@pytest.mark.parametrize(
    ("held", "wanted"),
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
    held: dict[str, Any], wanted: dict[str, Any]
) -> None:
    before, after = replace(DEFAULT_POLICY, **held), replace(DEFAULT_POLICY, **wanted)

    assert is_destructive(current=before, proposed=after)
    assert not is_destructive(current=after, proposed=before)


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"features": frozenset()},
        {"content_exclusion": {"*": ("**/.env",)}},
        {"max_key_lifetime_days": 1},
        {"content_capture": CAPTURE},
    ],
)
def test_other_changes_need_no_confirmation(wanted: dict[str, Any]) -> None:
    assert not is_destructive(current=DEFAULT_POLICY, proposed=replace(DEFAULT_POLICY, **wanted))
