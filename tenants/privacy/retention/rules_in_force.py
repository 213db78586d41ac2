"""Retention rules and legal holds in force. For use inside the tenant's scope."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from caret.contracts.policy import ContentCapturePolicy
from caret.foundation.ids import TenantId
from tenants.base.errors import NotFound
from tenants.models import LegalHold, RetentionRule
from tenants.policy.data_classes import DATA_CLASSES, DataClass
from tenants.policy.queries import load_active_policy
from tenants.privacy.retention.tables import HoldPeriod
from tenants.security.authorization.erased_users import find_erased_users, get_visible_email

_CONTENT_CLASSES: Final = frozenset({DataClass.CONTENT, DataClass.CONTENT_INDEX})


@dataclass(frozen=True, slots=True)
class EffectiveRule:
    """The retention days that a purge uses, and the tenant's rule if it has set one."""

    days: int  # the policy may have shortened the rule's days
    version: int | None  # None: never set
    author_email: str | None  # None: never set, not set by a user, or set by an erased user
    reason: str  # "": never set
    created_at: datetime | None  # None: never set
    is_shortened: bool = False  # by the policy
    is_from_policy: bool = False  # the policy alone determines the days
    is_default: bool = False  # the tenant has not set the days, or has restored the default

    def compute_cutoff(self, now: datetime) -> datetime:
        return now - timedelta(days=self.days)


def _shorten_rule(rule: EffectiveRule, days: int | None) -> EffectiveRule:
    if days is None or days >= rule.days:
        return rule
    return replace(rule, days=days, is_shortened=True)


def load_rule(data_class: DataClass, *, tenant_id: TenantId) -> EffectiveRule:
    """Return the rule of one class. Up to three queries."""
    return load_rules(tenant_id=tenant_id)[data_class]


def find_previous_days(data_class: DataClass, version: int, *, tenant_id: TenantId) -> int | None:
    """Return the tenant's own days before a version; None: the default was in force.

    Raises NotFound if the version does not exist.
    """
    rows = RetentionRule.objects.filter(tenant_id=tenant_id, data_class=data_class)
    rows_by_version = {row.version: row for row in rows.filter(version__in=[version - 1, version])}
    if version not in rows_by_version:
        raise NotFound("There is nothing to undo.")
    previous_rule = rows_by_version.get(version - 1)
    return None if previous_rule is None or previous_rule.is_default else previous_rule.days


def get_default_days(data_class: DataClass, *, tenant_id: TenantId) -> int:
    """Return the default days of a class for the tenant."""
    return _make_default_rule(
        data_class, load_active_policy(tenant_id=tenant_id).content_capture
    ).days


def load_rules(*, tenant_id: TenantId) -> Mapping[DataClass, EffectiveRule]:
    """Return the rules of all classes: the tenant's or a default, shortened by the policy.

    Up to three queries.
    """
    policy = load_active_policy(tenant_id=tenant_id)
    newest = (
        RetentionRule.objects.filter(tenant_id=tenant_id)
        .select_related("author")
        .order_by("data_class", "-version")
        .distinct("data_class")
    )
    own_rules = {row.data_class: row for row in newest}
    erased_ids = find_erased_users(tenant_id, [row.author_id for row in own_rules.values()])
    rules = {
        data_class: _to_effective_rule(
            own_rules.get(data_class),
            _make_default_rule(data_class, policy.content_capture),
            erased_ids,
        )
        for data_class in DATA_CLASSES
    }
    return {
        data_class: _shorten_rule(rule, policy.retention_days.get(data_class))
        for data_class, rule in rules.items()
    }


def _make_default_rule(
    data_class: DataClass, content_capture: ContentCapturePolicy | None
) -> EffectiveRule:
    days, is_from_policy = DATA_CLASSES[data_class].default_days, False
    if data_class in _CONTENT_CLASSES and content_capture is not None:
        days, is_from_policy = content_capture.retention_days, True
    return EffectiveRule(
        days=days,
        version=None,
        author_email=None,
        reason="",
        created_at=None,
        is_from_policy=is_from_policy,
        is_default=True,
    )


def load_hold_periods(*, tenant_id: TenantId) -> tuple[HoldPeriod, ...]:
    """Return the holds in force. One query."""
    rows = LegalHold.objects.filter(tenant_id=tenant_id, released_at=None).order_by("id")
    return tuple(HoldPeriod(row.user_id, row.since, row.until) for row in rows)


def _to_effective_rule(
    row: RetentionRule | None, default: EffectiveRule, erased_ids: frozenset[UUID]
) -> EffectiveRule:
    if row is None:
        return default
    email = get_visible_email(row.author, erased_ids)
    rule = EffectiveRule(row.days, row.version, email, row.reason, row.created_at)
    if not row.is_default:
        return rule
    return replace(rule, days=default.days, is_from_policy=default.is_from_policy, is_default=True)
