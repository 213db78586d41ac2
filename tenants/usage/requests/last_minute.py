"""Figures of the last minute, from usage records and outcomes."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Count, Max, Q, Subquery, Sum

from caret.contracts.usage import OutcomeEvent
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Permission
from tenants.models import Outcome, Tenant, UsageRecord
from tenants.security.authorization.actor import Actor
from tenants.usage.reports.filters import filter_visible_records
from tenants.usage.reports.latency import WITH_FIRST_TOKEN, MedianAndP99

MINUTE: Final = timedelta(minutes=1)
_ACCEPTANCES: Final = [OutcomeEvent.ACCEPTED, OutcomeEvent.PARTIALLY_ACCEPTED]


@dataclass(frozen=True, slots=True)
class LastMinute:
    until: datetime
    requests: int
    # Of the times to the first token of completed requests. None: there were none.
    first_token_p50_ms: float | None
    first_token_p99_ms: float | None
    prompt_tokens_with_cache_info: int  # of requests whose engine reported cached tokens
    cached_tokens: int  # of `prompt_tokens_with_cache_info`
    # Suggestions accepted in the last minute, as editors report them. None: suppressed, because
    # they were accepted by some users, but by fewer than the tenant's minimum group size.
    accepted: int | None


def can_see_accepted(actor: Actor) -> bool:
    """Return whether the actor may see LastMinute.accepted. read_last_minute does not check it."""
    return actor.has_permission(Permission.READ_QUALITY) or actor.has_permission(
        Permission.READ_OWN_QUALITY
    )


def read_last_minute(*, actor: Actor, now: datetime) -> LastMinute:
    """Return the figures of the tenant, or the actor's own. Two queries that read few rows.

    Raises Forbidden.
    """
    with tenant_scope(actor.tenant_id):
        records = filter_visible_records(
            actor, UsageRecord.objects.filter(occurred_at__gt=now - MINUTE)
        )
        totals = records.aggregate(
            requests=Count("*"),
            percentiles=MedianAndP99("first_token_ms", filter=WITH_FIRST_TOKEN),
            prompt_tokens_with_cache_info=Sum(
                "prompt_tokens", filter=Q(cached_tokens__isnull=False), default=0
            ),
            cached=Sum("cached_tokens", default=0),
        )
        outcomes = Outcome.objects.filter(occurred_at__gt=now - MINUTE, event__in=_ACCEPTANCES)
        acceptances = filter_visible_records(actor, outcomes).aggregate(
            num=Count("request_id", distinct=True),
            users=Count("user_id", distinct=True),
            # aggregate() allows only aggregates. Without outcomes, this is None, and `users` is 0.
            min_users=Max(_select_min_users(actor)),
        )
    is_own = not actor.has_permission(Permission.READ_USAGE)
    is_visible = is_own or not 0 < acceptances["users"] < acceptances["min_users"]
    p50_ms, p99_ms = totals["percentiles"] or (None, None)
    return LastMinute(
        until=now,
        requests=totals["requests"],
        first_token_p50_ms=p50_ms,
        first_token_p99_ms=p99_ms,
        prompt_tokens_with_cache_info=totals["prompt_tokens_with_cache_info"],
        cached_tokens=totals["cached"],
        accepted=acceptances["num"] if is_visible else None,
    )


def _select_min_users(actor: Actor) -> Subquery:
    """Return the tenant's minimum group size as a sub-query, to save a query."""
    return Subquery(Tenant.objects.filter(id=actor.tenant_id).values("min_group_users"))
