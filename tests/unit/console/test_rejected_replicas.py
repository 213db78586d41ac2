"""The reasons for rejecting a replica, in words."""

from collections.abc import Iterator

import pytest
from django.utils import translation

from console.operator_admin.pools.presenters import rejection_reason
from inference.pools.discovery.replica_identity import MismatchReason
from tenants.fleet.pools.pool_status import RejectedReplica


@pytest.fixture(autouse=True)
def _in_english() -> Iterator[None]:
    """Set English, because the previous test may have left another language."""
    with translation.override("en"):
        yield


def _make_rejected(reason: str, *, actual: str = "A", expected: str = "B") -> RejectedReplica:
    return RejectedReplica("one:1", reason, actual, expected, num_gateways=1)


@pytest.mark.parametrize("reason", MismatchReason)
def test_each_reason_has_a_text(reason: MismatchReason) -> None:
    text = rejection_reason(_make_rejected(reason.value))

    assert text != reason.value
    assert "%" not in text  # every placeholder was filled in


def test_the_text_contains_the_actual_and_the_expected_value() -> None:
    text = rejection_reason(_make_rejected("block_size", actual="16", expected="32"))

    assert text == "The replica's cache uses blocks of 16 tokens instead of 32."


def test_an_unknown_reason_of_a_newer_gateway_is_shown_unchanged() -> None:
    assert rejection_reason(_make_rejected("colour")) == "colour"
