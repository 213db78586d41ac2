"""Undoing a change of retention days adds a version.

If the first change is undone, the new version restores the default days.
"""

from datetime import UTC, datetime

import pytest

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, InvalidValue, NotFound
from tenants.base.permissions import Role
from tenants.models import AuditEntry, RetentionRule
from tenants.policy.data_classes import DATA_CLASSES, DataClass
from tenants.privacy.retention.operations import set_rule, undo_rule
from tenants.privacy.retention.queries import find_rule
from tenants.privacy.retention.rules_in_force import EffectiveRule
from tenants.security.authorization.actor import Actor
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
USAGE = DataClass.USAGE
DEFAULT_DAYS = DATA_CLASSES[USAGE].default_days


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME_PEOPLE)


def owner(company: Company) -> Actor:
    return company.people[Role.OWNER].actor


def set_days(company: Company, days: int) -> EffectiveRule:
    return set_rule(actor=owner(company), data_class=USAGE, days=days, reason="annex", now=NOW)


def undo(company: Company, version: int) -> EffectiveRule:
    return undo_rule(
        actor=owner(company), data_class=USAGE, version=version, reason="undone", now=NOW
    )


def test_undoing_the_first_rule_restores_the_default(company: Company) -> None:
    before = find_rule(actor=owner(company), data_class=USAGE)
    changed_rule = set_days(company, 90)

    undone = undo(company, 1)

    assert (before.is_default, changed_rule.is_default, undone.is_default) == (True, False, True)
    assert (undone.days, undone.version, undone.reason) == (DEFAULT_DAYS, 2, "undone")
    assert find_rule(actor=owner(company), data_class=USAGE) == undone


def test_an_undo_is_audited(company: Company) -> None:
    set_days(company, 90)

    undo(company, 1)

    with tenant_scope(company.tenant_id):
        entry = AuditEntry.objects.filter(action="retention.changed").order_by("-sequence")[0]
    assert (entry.before, entry.after) == ({"days": 90}, {"days": "default"})


def test_undo_restores_the_previous_days(company: Company) -> None:
    set_days(company, 90)
    set_days(company, 100)

    undone = undo(company, 2)

    assert (undone.days, undone.is_default, undone.version) == (90, False, 3)


def test_undoing_can_be_undone(company: Company) -> None:
    set_days(company, 90)
    undo(company, 1)

    redone_rule = undo(company, 2)
    default_rule = undo(company, 3)

    assert (redone_rule.days, redone_rule.is_default) == (90, False)
    assert (default_rule.days, default_rule.is_default) == (DEFAULT_DAYS, True)


def test_undo_does_not_restore_days_that_are_no_longer_allowed(company: Company) -> None:
    with tenant_scope(company.tenant_id):
        RetentionRule.objects.create(
            tenant_id=company.tenant_id,
            data_class=USAGE,
            version=1,
            days=DATA_CLASSES[USAGE].min_days - 1,
            reason="of an earlier release",
            created_at=NOW,
        )
    set_days(company, 90)

    with pytest.raises(InvalidValue):
        undo(company, 2)


def test_days_can_be_set_after_an_undo(company: Company) -> None:
    set_days(company, 90)
    undo(company, 1)

    rule = set_rule(
        actor=owner(company), data_class=USAGE, days=80, reason="annex", expected_version=2, now=NOW
    )

    assert (rule.days, rule.is_default, rule.version) == (80, False, 3)


def test_only_the_current_version_can_be_undone(company: Company) -> None:
    set_days(company, 90)
    set_days(company, 100)

    with pytest.raises(Conflict):
        undo(company, 1)
    for version in (0, 3):
        with pytest.raises(NotFound):
            undo(company, version)
    with pytest.raises(NotFound):
        undo(make_company("hooli", ACME_PEOPLE), 1)
