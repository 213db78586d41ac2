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
    # Of a chain only the beginning may go, by this field, whatever the clocks said: what is kept,
    # because it is young or held, keeps all that comes after it.
    chain_field: str | None = None

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
            if hold.until is not None:
                matched &= Q(**{f"{self.time_field}__lt": hold.until})
            if hold.user_id is not None and self.user_field is not None:
                matched &= Q(**{self.user_field: hold.user_id})
            found |= matched or ~Q(pk__in=[])
        return found

    def unheld(self, found: QuerySet[Any], holds: tuple[Hold, ...]) -> QuerySet[Any]:
        return found.exclude(self.held(holds)) if holds else found

    def due(self, tenant_id: TenantId, cutoff: datetime, holds: tuple[Hold, ...]) -> QuerySet[Any]:
        """Older than the cutoff, and not held."""
        older = self.older(tenant_id, cutoff)
        due = self.unheld(older, holds)
        if self.chain_field is None:
            return due
        young = Q(**{f"{self.time_field}__gte": cutoff})
        kept = self.rows(tenant_id).filter(young | self.held(holds) if holds else young)
        first = kept.order_by(self.chain_field).values_list(self.chain_field, flat=True).first()
        return due if first is None else due.filter(**{f"{self.chain_field}__lt": first})


TABLES: Final = MappingProxyType(
    {
        DataClass.USAGE: (
            Table(UsageRecord, "occurred_at", "user_id"),
            Table(Outcome, "occurred_at", "user_id"),
            Table(Typed, "occurred_at", "user_id"),
        ),
        DataClass.AUDIT: (Table(AuditEntry, "at", "actor_id", chain_field="sequence"),),
        DataClass.RETRIEVAL: (Table(RetrievalChunk, "used_at", None),),
        DataClass.REPLAYS: (Table(KeptAnswer, "created_at", None),),
    }
)


@dataclass(frozen=True, slots=True)
class Count:
    records: int
    due: int  # older than the cutoff, and not held
    held: int  # older than the cutoff, and on hold, or behind what is kept of a chain
    oldest_at: datetime | None  # of all records; None: there are none


def count(
    data_class: DataClass, *, tenant_id: TenantId, cutoff: datetime, holds: Iterable[Hold]
) -> Count:
    """Three queries a table."""
    holds = tuple(holds)
    records = due = held = 0
    oldest: list[datetime] = []
    for table in TABLES[data_class]:
        num_due = table.due(tenant_id, cutoff, holds).count()
        records += table.rows(tenant_id).count()
        due += num_due
        held += table.older(tenant_id, cutoff).count() - num_due
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
        due = table.due(tenant_id, cutoff, holds)
        keys = list(due.order_by(table.time_field).values_list("pk", flat=True)[:limit])
        if keys:
            deleted, _ = table.rows(tenant_id).filter(pk__in=keys).delete()
            return deleted
    return 0
