"""The reasons for rejecting a replica, in words."""

from collections.abc import Iterator

import pytest
from django.utils import translation

from console.operator_admin.number_format import why_refused
from inference.pools.discovery.replica_identity import MismatchReason
from tenants.fleet.pools.pool_status import RejectedReplica


@pytest.fixture(autouse=True)
def _in_english() -> Iterator[None]:
    """Whatever the previous test's language was."""
    with translation.override("en"):
        yield


@pytest.mark.parametrize("reason", MismatchReason)
def test_each_reason_has_words(reason: MismatchReason) -> None:
    told = why_refused(RejectedReplica("one:1", reason.value, "A", "B", 1))

    assert told != reason.value
    assert "%" not in told


def test_what_was_found_and_what_was_wanted_are_named() -> None:
    told = why_refused(RejectedReplica("one:1", "block_size", "16", "32", 1))

    assert told == "The replica's cache uses blocks of 16 tokens instead of 32."


def test_a_newer_gateways_reason_stands_as_it_is() -> None:
    assert why_refused(RejectedReplica("one:1", "colour", "", "", 1)) == "colour"
