"""Counts denials, that is, completions that were refused or withheld, from the usage records.

A policy or the scopes of an API key refuse a completion; a filter withholds it. Usage records
contain no paths, repositories or texts.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Case, Count, Max, Q, When

from caret.contracts.usage import FinishReason
from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Permission
from tenants.models import UsageRecord
from tenants.security.authorization.actor import Actor

MAX_DAYS: Final = 90
# Error codes of refused completions.
REFUSALS: Final = (
    "feature_disabled",
    "model_not_allowed",
    "path_excluded",
    "path_required",
    "region_not_allowed",
    "insufficient_scope",
)
WITHHELD: Final = ("public_code", "secret")  # filter reasons of withheld completions


@dataclass(frozen=True, slots=True)
class DenialCount:
    """The number of denials of one user, in one mode and for one reason."""

    reason: str  # one of REFUSALS or WITHHELD
    mode: str
    user_id: UserId | None  # None: service keys
    num_denials: int
    last_at: datetime


def count_denials(*, actor: Actor, num_days: int, now: datetime) -> list[DenialCount]:
    """Count the denials of the last `num_days` days, the most frequent first.

    Actors without READ_USAGE get only their own denials. One query. Raises Forbidden.
    """
    assert 1 <= num_days <= MAX_DAYS
    if not actor.has_permission(Permission.READ_USAGE):
        actor.require(Permission.READ_OWN_USAGE)
    records = UsageRecord.objects.filter(
        tenant_id=actor.tenant_id, occurred_at__gt=now - timedelta(days=num_days)
    )
    if not actor.has_permission(Permission.READ_USAGE):
        records = records.filter(user_id=actor.user_id) if actor.user_id else records.none()
    is_refused = Q(finish_reason=FinishReason.ERROR, error_code__in=REFUSALS)
    is_withheld = Q(finish_reason=FinishReason.FILTERED, filter_reason__in=WITHHELD)
    # One query for both, because reading all records takes most of the time.
    reason = Case(
        When(finish_reason=FinishReason.ERROR, then="error_code"), default="filter_reason"
    )
    with tenant_scope(actor.tenant_id):
        rows = list(
            records.filter(is_refused | is_withheld)
            .annotate(reason=reason)
            .values("reason", "mode", "user_id")
            .annotate(num_denials=Count("request_id"), last_at=Max("occurred_at"))
            .order_by()
        )
    counts = [
        DenialCount(
            reason=row["reason"],
            mode=row["mode"],
            user_id=None if row["user_id"] is None else UserId(str(row["user_id"])),
            num_denials=row["num_denials"],
            last_at=row["last_at"],
        )
        for row in rows
    ]
    return sorted(
        counts,
        key=lambda count: (-count.num_denials, count.reason, count.mode, str(count.user_id)),
    )
