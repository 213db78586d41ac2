"""Which days and holds are in force. Inside the tenant's scope only."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from caret.contracts.policy import Telemetry
from caret.foundation.ids import TenantId
from tenants.members.erased import email_of, erased_among
from tenants.models import LegalHold, RetentionRule
from tenants.policies.queries import find_rules
from tenants.retention.classes import TERMS, DataClass
from tenants.retention.stores import Hold

_OF_TELEMETRY: Final = frozenset({DataClass.CONTENT, DataClass.CONTENT_INDEX})


@dataclass(frozen=True, slots=True)
class Rule:
    days: int
    version: int | None  # None: the default
    author_email: str | None  # None: the default, the platform itself, or who was erased
    reason: str
    created_at: datetime | None
    is_shortened: bool = False  # by the policy
    is_policys: bool = False  # the policy alone says it

    def cutoff(self, now: datetime) -> datetime:
        return now - timedelta(days=self.days)


def _shortened(rule: Rule, days: int | None) -> Rule:
    if days is None or days >= rule.days:
        return rule
    return replace(rule, days=days, is_shortened=True)


def rule_of(data_class: DataClass, *, tenant_id: TenantId) -> Rule:
    return rules_of(tenant_id=tenant_id)[data_class]


def days_before(data_class: DataClass, version: int, *, tenant_id: TenantId) -> int | None:
    """The tenant's own days, or the default, that version `version` has replaced; None: there is
    no such version."""
    rows = RetentionRule.objects.filter(tenant_id=tenant_id, data_class=data_class)
    found = dict(rows.filter(version__in=[version - 1, version]).values_list("version", "days"))
    if version not in found:
        return None
    if version > 1:
        return found.get(version - 1)
    return _default(data_class, find_rules(tenant_id=tenant_id).telemetry).days


def rules_of(*, tenant_id: TenantId) -> Mapping[DataClass, Rule]:
    """The tenant's own, or a default; the policy may shorten either. Four queries."""
    policy = find_rules(tenant_id=tenant_id)
    newest = (
        RetentionRule.objects.filter(tenant_id=tenant_id)
        .select_related("author")
        .order_by("data_class", "-version")
        .distinct("data_class")
    )
    own = {row.data_class: row for row in newest}
    erased = erased_among(tenant_id, [row.author_id for row in own.values()])
    found = {
        data_class: _rule(own[data_class], erased)
        if data_class in own
        else _default(data_class, policy.telemetry)
        for data_class in TERMS
    }
    return {
        data_class: _shortened(rule, policy.retention_days.get(data_class))
        for data_class, rule in found.items()
    }


def _default(data_class: DataClass, telemetry: Telemetry | None) -> Rule:
    if data_class in _OF_TELEMETRY and telemetry is not None:
        return Rule(telemetry.retention_days, None, None, "", None, is_policys=True)
    return Rule(TERMS[data_class].default_days, None, None, "", None)


def holds_of(*, tenant_id: TenantId) -> tuple[Hold, ...]:
    """Those in force. One query."""
    rows = LegalHold.objects.filter(tenant_id=tenant_id, released_at=None).order_by("id")
    return tuple(Hold(row.user_id, row.since, row.until) for row in rows)


def _rule(row: RetentionRule, erased: frozenset[UUID]) -> Rule:
    email = email_of(row.author, erased)
    return Rule(row.days, row.version, email, row.reason, row.created_at)
