"""The rows of an export in batches.

The export's source opens the tenant's scope for each batch, so no scope may be open here.
"""

from collections.abc import Iterator, Sequence

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import InvalidValue
from tenants.base.validation.time_bounds import validate_datetime
from tenants.compliance.exports.export import Export
from tenants.compliance.exports.rows import Period, Row, RowQuery
from tenants.security.audit.operations import record_read


def require_period(period: Period) -> None:
    """Check that both times are valid, and that the end is after the start. Raises InvalidValue."""
    validate_datetime("since", period.start)
    validate_datetime("until", period.end)
    if period.start >= period.end:
        raise InvalidValue("until", "The end must be after the start.")


def read_rows(export: Export, query: RowQuery) -> Iterator[Sequence[Row]]:
    """Return the rows in batches, and record the read in the audit log first.

    Raises Forbidden and InvalidValue, both before the first batch.
    """
    query.actor.require(export.permission)
    require_period(query.period)
    record_export(export, query)
    return _read_batches(export, query)


def record_export(export: Export, query: RowQuery) -> None:
    """Record the export in a separate transaction, before anything is read.

    The entry locks the tenant's audit chain until the commit, and an export may take minutes.
    """
    with tenant_scope(query.tenant_id):
        record_read(
            actor=query.actor,
            action="export.read",
            target=f"export:{export.name}",
            filters={
                "version": export.version,
                "start": query.period.start.isoformat(),
                "end": query.period.end.isoformat(),
            },
            now=query.now,
        )


def _read_batches(export: Export, query: RowQuery) -> Iterator[Sequence[Row]]:
    after: str | None = None
    while True:
        batch = export.source.read(query, after=after)
        if batch.rows:
            yield batch.rows
        if batch.next is None:
            return
        after = batch.next
