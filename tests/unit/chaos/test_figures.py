"""The decision whether a fault has passed."""

from typing import Any

import pytest

from tests.chaos.client_log import Note
from tests.chaos.figures import Figures, Quiet, Recovery, is_bad

SERVED = Note(at_s=0.0, tenant="acme", ending="stop", total_ms=40.0)
FAILED = Note(at_s=0.0, tenant="acme", ending="lost", total_ms=40.0, breaks=1)
AGAIN = Note(at_s=0.0, tenant="acme", ending="stop", total_ms=40.0, attempts=2, breaks=1)
LATE = Quiet(calm_ms=10.0, fault_ms=16.0, num=100)


def _figures(**more: Any) -> Figures:
    values: dict[str, Any] = {
        "notes": [SERVED, AGAIN],
        "quiet": Quiet(calm_ms=10.0, fault_ms=14.0, num=100),
        "ledger": {},
        "is_even": True,
        "recovery": Recovery(0.0, 0.0),
        "billed_s": 0.0,
        "fault_s": 1.0,
        "others_cores": 0.0,
    }
    return Figures(**(values | more))


def test_it_has_passed_when_none_failed_and_all_is_billed() -> None:
    assert _figures().has_passed


@pytest.mark.parametrize("more", [{"notes": [FAILED]}, {"is_even": False}, {"quiet": LATE}])
def test_each_of_its_targets_can_be_missed(more: dict[str, Any]) -> None:
    assert not _figures(**more).has_passed


def test_a_slow_token_says_nothing_where_others_use_the_cores() -> None:
    assert _figures(quiet=LATE, others_cores=1.0).has_passed


def test_nor_where_the_fault_is_that_tokens_are_held_up() -> None:
    held_up = _figures(quiet=LATE, holds_up_tokens=True)

    assert held_up.has_passed
    assert held_up.target != _figures().target


@pytest.mark.parametrize(("note", "verdict"), [(SERVED, False), (AGAIN, True), (FAILED, True)])
def test_what_needed_another_attempt_is_not_recovered(note: Note, verdict: bool) -> None:
    assert is_bad(note) is verdict
