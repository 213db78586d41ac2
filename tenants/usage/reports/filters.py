"""Filters of reports: by language, editor, model, variant or team."""

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db.models import Q, QuerySet

from tenants.base.permissions import Permission
from tenants.models import TeamMembership
from tenants.security.authorization.actor import Actor

# The columns of rollups and usage records that a report can be filtered by.
COLUMNS: Final = ("language", "editor", "model", "variant")


@dataclass(frozen=True, slots=True)
class ReportFilter:
    """A filter of usage. None: the field is not filtered; "": only usage with an unknown value."""

    language: str | None = None
    editor: str | None = None
    model: str | None = None
    variant: str | None = None
    team_id: UUID | None = None  # its current members

    @property
    def is_empty(self) -> bool:
        return self == NO_FILTER


NO_FILTER: Final = ReportFilter()


def build_filter_condition(
    actor: Actor, report_filter: ReportFilter, *, is_for_records: bool = False
) -> Q:
    """Return the filter as a condition for rollups; if `is_for_records`, for usage records.

    Unknown values are empty in rollups, but null or empty in usage records.
    """
    condition = Q()
    for column in COLUMNS:
        value = getattr(report_filter, column)
        if value is None:
            continue
        column_condition = Q(**{column: value})
        if is_for_records and value == "":
            column_condition |= Q(**{f"{column}__isnull": True})
        condition &= column_condition
    if report_filter.team_id is not None:
        condition &= Q(user_id__in=_find_member_ids(actor, report_filter.team_id))
    return condition


def _find_member_ids(actor: Actor, team_id: UUID) -> QuerySet[Any, Any]:
    rows = TeamMembership.objects.filter(tenant_id=actor.tenant_id, team_id=team_id)
    return rows.values("user_id")


def filter_visible_records(actor: Actor, records: QuerySet[Any]) -> QuerySet[Any]:
    """Return those of the records that the actor may see: the tenant's, or only the actor's own.

    Raises Forbidden.
    """
    records = records.filter(tenant_id=actor.tenant_id)
    if actor.has_permission(Permission.READ_USAGE):
        return records
    actor.require(Permission.READ_OWN_USAGE)
    return records.none() if actor.user_id is None else records.filter(user_id=actor.user_id)
