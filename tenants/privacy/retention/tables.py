"""The tables of the data classes that a purge deletes. For use inside the tenant's scope."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, F, Min, Model, Q, QuerySet, Value

from caret.foundation.ids import TenantId
from tenants.models import (
    AuditEntry,
    IdempotencyRecord,
    Outcome,
    RetrievalChunk,
    TypingReport,
    UsageRecord,
)
from tenants.policy.data_classes import DataClass


@dataclass(frozen=True, slots=True)
class HoldPeriod:
    """The users and the half-open period that a legal hold covers."""

    user_id: UUID | None  # None: all users
    since: datetime | None  # None: unbounded
    until: datetime | None  # None: unbounded


@dataclass(frozen=True, slots=True)
class RetentionTable:
    model: type[Model]
    time_field: str  # the time from which retention counts
    # None: rows belong to no user. A hold of one user then covers the rows of all users.
    user_field: str | None
    # The field that orders a chain. Only the beginning of a chain may be deleted: a record that is
    # recent or on hold also keeps all records after it, whatever their times.
    chain_field: str | None = None

    def select_rows(self, tenant_id: TenantId) -> QuerySet[Any]:
        return self.model._default_manager.filter(tenant_id=tenant_id)

    def select_older(self, tenant_id: TenantId, cutoff: datetime) -> QuerySet[Any]:
        return self.select_rows(tenant_id).filter(**{f"{self.time_field}__lt": cutoff})

    def make_hold_condition(self, holds: Iterable[HoldPeriod]) -> Q:
        """Return the filter of rows on hold. Without holds, the filter matches nothing."""
        condition = Q(pk__in=[])
        for hold in holds:
            hold_condition = Q()
            if hold.since is not None:
                hold_condition &= Q(**{f"{self.time_field}__gte": hold.since})
            if hold.until is not None:
                hold_condition &= Q(**{f"{self.time_field}__lt": hold.until})
            if hold.user_id is not None and self.user_field is not None:
                hold_condition &= Q(**{self.user_field: hold.user_id})
            # An empty Q would add nothing, but a hold of all users and times covers all rows.
            condition |= hold_condition or ~Q(pk__in=[])
        return condition

    def exclude_held(self, rows: QuerySet[Any], holds: tuple[HoldPeriod, ...]) -> QuerySet[Any]:
        return rows.exclude(self.make_hold_condition(holds)) if holds else rows

    def select_due(
        self, tenant_id: TenantId, cutoff: datetime, holds: tuple[HoldPeriod, ...]
    ) -> QuerySet[Any]:
        """Return the rows that are due: older than the cutoff and not on hold.

        In a chain, rows after a row that is recent or on hold are not due, either.
        """
        return self.select_rows(tenant_id).filter(self.make_due_condition(tenant_id, cutoff, holds))

    def make_due_condition(
        self, tenant_id: TenantId, cutoff: datetime, holds: tuple[HoldPeriod, ...]
    ) -> Q:
        """Return the filter of rows that are due (see select_due). One query for a chain."""
        due = Q(**{f"{self.time_field}__lt": cutoff})
        if holds:
            due &= ~self.make_hold_condition(holds)
        if self.chain_field is None:
            return due
        is_kept = Q(**{f"{self.time_field}__gte": cutoff})
        if holds:
            is_kept |= self.make_hold_condition(holds)
        kept_rows = self.select_rows(tenant_id).filter(is_kept).order_by(self.chain_field)
        first_kept = kept_rows.values_list(self.chain_field, flat=True).first()
        return due if first_kept is None else due & Q(**{f"{self.chain_field}__lt": first_kept})


RETENTION_TABLES: Final = MappingProxyType(
    {
        DataClass.USAGE: (
            RetentionTable(UsageRecord, "occurred_at", "user_id"),
            RetentionTable(Outcome, "occurred_at", "user_id"),
            RetentionTable(TypingReport, "occurred_at", "user_id"),
        ),
        DataClass.AUDIT: (RetentionTable(AuditEntry, "at", "actor_id", chain_field="sequence"),),
        DataClass.RETRIEVAL: (RetentionTable(RetrievalChunk, "used_at", None),),
        DataClass.IDEMPOTENCY: (RetentionTable(IdempotencyRecord, "created_at", None),),
    }
)


@dataclass(frozen=True, slots=True)
class RecordCounts:
    records: int
    due: int  # to be deleted: older than the cutoff, without `held`
    held: int  # older than the cutoff, but on hold or after a kept record of a chain
    oldest_at: datetime | None  # of all records; None: no records


def count_records(
    data_class: DataClass, *, tenant_id: TenantId, cutoff: datetime, holds: Iterable[HoldPeriod]
) -> RecordCounts:
    """Count a class's records. Reads all rows of the tenant.

    One query for each table, and one for the beginning of a chain.
    """
    holds = tuple(holds)
    table_counts = [
        _count_table_records(table, tenant_id, cutoff, holds)
        for table in RETENTION_TABLES[data_class]
    ]
    return RecordCounts(
        records=sum(counts.records for counts in table_counts),
        due=sum(counts.due for counts in table_counts),
        held=sum(counts.held for counts in table_counts),
        oldest_at=min(
            (counts.oldest_at for counts in table_counts if counts.oldest_at), default=None
        ),
    )


def _count_table_records(
    table: RetentionTable, tenant_id: TenantId, cutoff: datetime, holds: tuple[HoldPeriod, ...]
) -> RecordCounts:
    totals = table.select_rows(tenant_id).aggregate(
        records=Count("*"),
        due=Count(table.time_field, filter=table.make_due_condition(tenant_id, cutoff, holds)),
        older=Count(table.time_field, filter=Q(**{f"{table.time_field}__lt": cutoff})),
        oldest_at=Min(table.time_field),
    )
    return RecordCounts(
        totals["records"], totals["due"], totals["older"] - totals["due"], totals["oldest_at"]
    )


def find_oldest_records(tenant_id: TenantId) -> dict[DataClass, datetime]:
    """Return the time of the oldest record of each class, without empty classes.

    One query, which reads the beginning of an index for each table.
    """
    parts = [
        table.select_rows(tenant_id)
        .annotate(of_class=Value(data_class.value), row_time=F(table.time_field))
        .order_by(table.time_field)
        .values_list("of_class", "row_time")[:1]
        for data_class, tables in RETENTION_TABLES.items()
        for table in tables
    ]
    oldest: dict[DataClass, datetime] = {}
    for name, at in parts[0].union(*parts[1:], all=True):
        data_class = DataClass(name)
        oldest[data_class] = min(at, oldest.get(data_class, at))
    return oldest


def count_overdue_records(
    tenant_id: TenantId, cutoffs: Mapping[DataClass, datetime], holds: tuple[HoldPeriod, ...]
) -> dict[DataClass, int]:
    """Return how many records of each class are due at its cutoff, without classes that have none.

    One query, and one for the beginning of each chain. Reads the rows older than the cutoffs.
    """
    parts = [
        table.select_due(tenant_id, cutoffs[data_class], holds)
        .order_by()
        .annotate(of_class=Value(data_class.value))
        .values("of_class")
        .annotate(num=Count("*"))
        .values_list("of_class", "num")
        for data_class, tables in RETENTION_TABLES.items()
        for table in tables
    ]
    overdue = Counter[DataClass]()
    for name, num in parts[0].union(*parts[1:], all=True):
        overdue[DataClass(name)] += num
    return dict(overdue)


def delete_due_batch(
    data_class: DataClass,
    *,
    tenant_id: TenantId,
    cutoff: datetime,
    holds: Iterable[HoldPeriod],
    limit: int,
) -> int:
    """Delete the oldest due records of one table of the class, up to `limit`; return how many.

    Returns 0 only if no record of the class is due.
    """
    holds = tuple(holds)
    for table in RETENTION_TABLES[data_class]:
        due = table.select_due(tenant_id, cutoff, holds)
        # A chain is deleted in its own order: times may be wrong, and a gap would break the chain.
        order = table.chain_field or table.time_field
        primary_keys = list(due.order_by(order).values_list("pk", flat=True)[:limit])
        if primary_keys:
            deleted, _ = table.select_rows(tenant_id).filter(pk__in=primary_keys).delete()
            return deleted
    return 0


def count_records_on_hold(data_class: DataClass, *, tenant_id: TenantId, hold: HoldPeriod) -> int:
    """Count the records that a hold covers, of any age. One query for each table."""
    return sum(
        table.select_rows(tenant_id).filter(table.make_hold_condition((hold,))).count()
        for table in RETENTION_TABLES[data_class]
    )
