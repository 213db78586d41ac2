"""The alerts on the console's overview page: problems that a user should look at now."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from django.db.models import (
    BigIntegerField,
    Count,
    Exists,
    ExpressionWrapper,
    F,
    IntegerField,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
)

from caret.contracts.api_key import KeyKind
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import start_of_month, utc_day
from tenants.base.permissions import Permission
from tenants.identity.sso.operations import UNKNOWN_CERTIFICATE
from tenants.identity.sso.saml_metadata import find_last_expiry
from tenants.models import (
    ApiKey,
    AuditEntry,
    AuditSink,
    Budget,
    BudgetAlert,
    IdentityProvider,
    Tenant,
)
from tenants.models.api_key import make_active_condition
from tenants.security.authorization.actor import Actor

LEAKED_WITHIN: Final = timedelta(days=30)  # before now
KEY_EXPIRES_WITHIN: Final = timedelta(days=14)
# It takes time to get a new certificate from the identity provider's administrator.
CERTIFICATE_EXPIRES_WITHIN: Final = timedelta(days=30)
REFUSED_WITHIN: Final = timedelta(days=1)  # before now, for a sign-in
_USED_UP: Final = 100  # percent


class AlertKind(StrEnum):
    SINK_FAILING = "sink_failing"
    BUDGET_EXCEEDED = "budget_exceeded"
    KEY_LEAKED = "key_leaked"
    KEY_EXPIRING = "key_expiring"  # a service key: no user would notice in time
    CERTIFICATE_EXPIRING = "certificate_expiring"  # of the identity provider, for SAML
    CERTIFICATE_UNKNOWN = "certificate_unknown"  # sign-ins fail, perhaps after a rotation


_REQUIRED_PERMISSIONS: Final = {
    AlertKind.SINK_FAILING: Permission.READ_AUDIT,
    AlertKind.BUDGET_EXCEEDED: Permission.READ_BILLING,
    AlertKind.KEY_LEAKED: Permission.READ_KEYS,
    AlertKind.KEY_EXPIRING: Permission.READ_KEYS,
    AlertKind.CERTIFICATE_EXPIRING: Permission.READ_SIGN_IN_SETTINGS,
    AlertKind.CERTIFICATE_UNKNOWN: Permission.READ_SIGN_IN_SETTINGS,
}


@dataclass(frozen=True, slots=True)
class Alert:
    kind: AlertKind
    num: int  # of sinks, budgets, keys, identity providers or refused sign-ins
    # The time at which the first problem began, or at which the first key or the last certificate
    # expires. None: unknown.
    at: datetime | None


def list_alerts(*, actor: Actor, now: datetime) -> list[Alert]:
    """Return the alerts that the actor may see, most urgent first. One query."""
    with tenant_scope(actor.tenant_id):
        facts = _read_facts(actor, now)
    return [
        alert
        for alert in _to_alerts(facts, now)
        if actor.has_permission(_REQUIRED_PERMISSIONS[alert.kind])
    ]


def _read_facts(actor: Actor, now: datetime) -> dict[str, Any]:
    """Return the columns of the tenant, and the numbers and times from which alerts are made."""
    sinks = AuditSink.objects.filter(tenant_id=OuterRef("id"), failed_since__isnull=False)
    keys = ApiKey.objects.filter(tenant_id=OuterRef("id"))
    leaked = keys.filter(leaked_at__gt=now - LEAKED_WITHIN)
    expiring = keys.filter(
        make_active_condition(now), kind=KeyKind.SERVICE, expires_at__lt=now + KEY_EXPIRES_WITHIN
    )
    providers = IdentityProvider.objects.filter(tenant_id=OuterRef("id"))
    refused = _filter_unknown_certificates(now)
    row = (
        Tenant.objects.annotate(
            sinks=_count(sinks),
            sinks_at=_select_earliest(sinks, "failed_since"),
            budgets=_count(_filter_exceeded_budgets(now)),
            leaked=_count(leaked),
            leaked_at=_select_earliest(leaked, "leaked_at"),
            expiring=_count(expiring),
            expiring_at=_select_earliest(expiring, "expires_at"),
            certificates=Subquery(providers.values("certificates")[:1]),
            refused=_count(refused),
            refused_at=_select_earliest(refused, "at"),
        )
        .values()
        .get(id=actor.tenant_id)
    )
    return dict(row)


def _filter_exceeded_budgets(now: datetime) -> QuerySet[BudgetAlert]:
    """Return this month's alerts of used-up budgets whose limit has not changed since.

    For a budget per seat, the alert contains the limit of all seats together: a multiple of the
    limit per seat. If the budget's present limit per seat does not divide the alert's limit, the
    limit per seat has changed since.
    """
    unchanged = Budget.objects.alias(
        remainder=ExpressionWrapper(
            OuterRef("limit_micros") % F("limit_micros"), output_field=BigIntegerField()
        )
    ).filter(
        Q(limit_micros=OuterRef("limit_micros")) | Q(is_per_seat=True, remainder=0),
        tenant_id=OuterRef("tenant_id"),
        id=OuterRef("budget_id"),
    )
    return BudgetAlert.objects.filter(
        Exists(unchanged),
        tenant_id=OuterRef("id"),
        month=start_of_month(utc_day(now)),
        percent=_USED_UP,
    )


def _filter_unknown_certificates(now: datetime) -> QuerySet[AuditEntry]:
    """Return recent sign-ins that were refused because the provider's certificate is unknown.

    Sign-ins before the current identity provider was set up are left out.
    """
    provider = IdentityProvider.objects.filter(
        tenant_id=OuterRef("tenant_id"), created_at__lt=OuterRef("at")
    )
    return AuditEntry.objects.filter(
        Exists(provider),
        tenant_id=OuterRef("id"),
        target="identity_provider",
        at__gt=now - REFUSED_WITHIN,
        action="sign_in.refused",
        after__reason=UNKNOWN_CERTIFICATE,
    )


def _to_alerts(facts: dict[str, Any], now: datetime) -> Iterator[Alert]:
    if facts["leaked"]:
        yield Alert(AlertKind.KEY_LEAKED, facts["leaked"], facts["leaked_at"])
    if facts["budgets"]:
        yield Alert(AlertKind.BUDGET_EXCEEDED, facts["budgets"], None)
    if facts["sinks"]:
        yield Alert(AlertKind.SINK_FAILING, facts["sinks"], facts["sinks_at"])
    if facts["refused"]:
        yield Alert(AlertKind.CERTIFICATE_UNKNOWN, facts["refused"], facts["refused_at"])
    if facts["certificates"]:
        expires_at = find_last_expiry(facts["certificates"].split())
        if expires_at < now + CERTIFICATE_EXPIRES_WITHIN:
            yield Alert(AlertKind.CERTIFICATE_EXPIRING, 1, expires_at)
    if facts["expiring"]:
        yield Alert(AlertKind.KEY_EXPIRING, facts["expiring"], facts["expiring_at"])


def _count(rows: QuerySet[Any]) -> Subquery:
    """Return a subquery for the number of rows; NULL: no rows."""
    counted = rows.order_by().values("tenant_id").annotate(num=Count("tenant_id")).values("num")
    return Subquery(counted, output_field=IntegerField())


def _select_earliest(rows: QuerySet[Any], column: str) -> Subquery:
    earliest = rows.order_by().values("tenant_id").annotate(min=Min(column)).values("min")
    return Subquery(earliest)
