"""The rows of a data class: counted, and deleted oldest first. Inside the tenant's scope only."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from django.db.models import Model, Q, QuerySet

from caret.foundation.ids import TenantId
from tenants.models import AuditEntry, KeptAnswer, Outcome, RetrievalChunk, Typed, UsageRecord
from tenants.retention.classes import DataClass


@dataclass(frozen=True, slots=True)
class Hold:
    user_id: UUID | None  # None: everybody
    since: datetime | None  # None: from the beginning
    until: datetime | None  # None: without end


@dataclass(frozen=True, slots=True)
class Table:
    model: type[Model]
    time_field: str
    user_field: str | None  # None: its rows are nobody's in particular, so a user's hold holds all
    # Of a chain only the beginning may go: a hold keeps all that comes after what it holds.
    is_chain: bool = False

    def rows(self, tenant_id: TenantId) -> QuerySet[Any]:
        return self.model._default_manager.filter(tenant_id=tenant_id)

    def older(self, tenant_id: TenantId, cutoff: datetime) -> QuerySet[Any]:
        return self.rows(tenant_id).filter(**{f"{self.time_field}__lt": cutoff})

    def held(self, holds: Iterable[Hold]) -> Q:
        """Matches nothing when there are no holds."""
        found = Q(pk__in=[])
        for hold in holds:
            matched = Q()
            if hold.since is not None:
                matched &= Q(**{f"{self.time_field}__gte": hold.since})
            if hold.until is not None and not self.is_chain:
                matched &= Q(**{f"{self.time_field}__lt": hold.until})
            if hold.user_id is not None and self.user_field is not None:
                matched &= Q(**{self.user_field: hold.user_id})
            found |= matched or ~Q(pk__in=[])
        return found


TABLES: Final = MappingProxyType(
    {
        DataClass.USAGE: (
            Table(UsageRecord, "occurred_at", "user_id"),
            Table(Outcome, "occurred_at", "user_id"),
            Table(Typed, "occurred_at", "user_id"),
        ),
        DataClass.AUDIT: (Table(AuditEntry, "at", None, is_chain=True),),
        DataClass.RETRIEVAL: (Table(RetrievalChunk, "used_at", None),),
        DataClass.REPLAYS: (Table(KeptAnswer, "created_at", None),),
    }
)


@dataclass(frozen=True, slots=True)
class Count:
    records: int
    due: int  # older than the cutoff, and not held
    held: int  # older than the cutoff, and on hold
    oldest_at: datetime | None  # of all records; None: there are none


def count(
    data_class: DataClass, *, tenant_id: TenantId, cutoff: datetime, holds: Iterable[Hold]
) -> Count:
    """Three queries a table."""
    holds = tuple(holds)
    records = due = held = 0
    oldest: list[datetime] = []
    for table in TABLES[data_class]:
        older = table.older(tenant_id, cutoff)
        num_held = older.filter(table.held(holds)).count() if holds else 0
        records += table.rows(tenant_id).count()
        due += older.count() - num_held
        held += num_held
        first = (
            table.rows(tenant_id)
            .order_by(table.time_field)
            .values_list(table.time_field, flat=True)
            .first()
        )
        oldest += [] if first is None else [first]
    return Count(records, due, held, min(oldest, default=None))


def delete_some(
    data_class: DataClass,
    *,
    tenant_id: TenantId,
    cutoff: datetime,
    holds: Iterable[Hold],
    limit: int,
) -> int:
    """At most `limit` of the oldest; how many."""
    holds = tuple(holds)
    for table in TABLES[data_class]:
        older = table.older(tenant_id, cutoff)
        due = older.exclude(table.held(holds)) if holds else older
        keys = list(due.order_by(table.time_field).values_list("pk", flat=True)[:limit])
        if keys:
            deleted, _ = table.rows(tenant_id).filter(pk__in=keys).delete()
            return deleted
    return 0
