"""The decision whether the service has withstood an injected fault.

The quiet tenant sends few requests. Its first tokens may take at most 1.5 times as long during the
fault as without it, and some must come.
"""

from typing import Any

import pytest

from tests.chaos.client_log import Note
from tests.chaos.fault_result import FaultResult, QuietTenant, Recovery, is_disturbed

SERVED = Note(at_s=0.0, tenant="acme", ending="stop", total_ms=40.0)
FAILED = Note(at_s=0.0, tenant="acme", ending="lost", total_ms=40.0, breaks=1)
RETRIED = Note(at_s=0.0, tenant="acme", ending="stop", total_ms=40.0, attempts=2, breaks=1)
SLOWED_DOWN = QuietTenant(calm_ms=10.0, fault_ms=16.0, num_requests=100)
WITHOUT_TOKENS = QuietTenant(calm_ms=10.0, fault_ms=None, num_requests=100)


def _make_result(**fields: Any) -> FaultResult:
    """Return the result of a run that passes, unless `fields` change that."""
    values: dict[str, Any] = {
        "notes": [SERVED, RETRIED],
        "quiet": QuietTenant(calm_ms=10.0, fault_ms=14.0, num_requests=100),
        "ledger": {},
        "is_balanced": True,
        "recovery": Recovery(served_s=0.0, ready_s=0.0),
        "billed_s": 0.0,
        "fault_s": 1.0,
        "cores_used_by_others": 0.0,
    }
    return FaultResult(**(values | fields))


def test_a_run_without_failures_and_with_a_balanced_ledger_passes() -> None:
    assert _make_result().has_passed


@pytest.mark.parametrize(
    "fields",
    [
        {"notes": [FAILED]},
        {"is_balanced": False},
        {"quiet": SLOWED_DOWN},
        {"quiet": WITHOUT_TOKENS},
    ],
)
def test_a_run_that_misses_one_target_fails(fields: dict[str, Any]) -> None:
    assert not _make_result(**fields).has_passed


def test_without_a_calm_time_the_quiet_tenant_is_not_slowed_down() -> None:
    quiet = QuietTenant(calm_ms=None, fault_ms=16.0, num_requests=100)

    assert _make_result(quiet=quiet).has_passed


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        ("revoked_api_key", True),
        ("unauthorized", True),
        ("shed", False),
        ("rate_limited", False),
        ("lost", False),
        ("stop", False),
    ],
)
def test_only_a_rejection_of_the_key_shows_that_the_key_is_revoked(
    ending: str, expected: bool
) -> None:
    note = Note(at_s=0.0, tenant="acme", ending=ending, total_ms=40.0)

    assert note.is_key_rejected is expected


def test_slow_tokens_are_tolerated_while_other_processes_use_the_cores() -> None:
    assert _make_result(quiet=SLOWED_DOWN, cores_used_by_others=1.0).has_passed


def test_slow_tokens_are_tolerated_if_the_fault_delays_tokens() -> None:
    delayed = _make_result(quiet=SLOWED_DOWN, delays_tokens=True)

    assert delayed.has_passed
    assert delayed.target != _make_result().target  # without a limit for these tokens


@pytest.mark.parametrize(("note", "expected"), [(SERVED, False), (RETRIED, True), (FAILED, True)])
def test_the_service_has_not_recovered_while_requests_fail_or_need_retries(
    note: Note, expected: bool
) -> None:
    assert is_disturbed(note) is expected
