"""A preview counts the records that a purge would delete with another number of retention days."""

from datetime import timedelta

import pytest

from tenants.policy.document import DEFAULT_POLICY, serialize_policy
from tenants.policy.operations import set_policy
from tenants.privacy.retention.operations import NewHold, place_hold
from tenants.privacy.retention.queries import preview_purge
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company
from tests.integration.tenants.test_retention import (
    NOW,
    USAGE,
    add_records_of_age,
    count_old_records,
    owner,
)


@pytest.fixture
def company() -> Company:
    return make_company("umbrella", ACME_PEOPLE)


def test_a_preview_counts_the_deletions_of_a_change(company: Company) -> None:
    add_records_of_age(company, 100, 200, 300)
    # The hold covers ages from 290 to 310 days, so it keeps the oldest record.
    since = NOW - timedelta(days=310)
    place_hold(
        actor=owner(company),
        new=NewHold("m", "r", since=since, until=since + timedelta(days=20)),
        now=NOW,
    )

    preview = preview_purge(actor=owner(company), data_class=USAGE, days=90, now=NOW)

    assert (preview.would_delete, preview.would_hold) == (2, 1)
    assert preview.oldest_at == NOW - timedelta(days=300)
    assert count_old_records(company) == 3


def test_the_shorter_of_policy_and_preview_applies(company: Company) -> None:
    policy = serialize_policy(DEFAULT_POLICY) | {"retention_days": {"usage_records": 70}}
    set_policy(actor=owner(company), document=policy, reason="x", now=NOW)
    add_records_of_age(company, 68, 80, 100)

    longer = preview_purge(actor=owner(company), data_class=USAGE, days=90, now=NOW)
    shorter = preview_purge(actor=owner(company), data_class=USAGE, days=65, now=NOW)

    assert (longer.would_delete, shorter.would_delete) == (2, 3)
