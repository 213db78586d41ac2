"""The rows of an export, in batches: a cursor of the server's, inside the tenant's wall.

All rows are of one moment, however long the reading takes. The cursor lives in its transaction, so
a pooler that hands out connections by the transaction may stand between.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection

from caret.foundation.postgres.tenancy import tenant
from tenants.audit.operations import record_read
from tenants.errors import Invalid
from tenants.exports.definitions import Export
from tenants.members.actor import Actor

BATCH_ROWS: Final = 2_000
Value = str | int | float | bool | datetime | date | UUID | None
Row = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Period:
    """Half-open, UTC."""

    start: datetime
    end: datetime


@contextmanager
def open_rows(
    *, actor: Actor, export: Export, period: Period, now: datetime
) -> Iterator[Iterator[list[Row]]]:
    """Batches in the export's order, as long as the context is open. Raises Forbidden, Invalid."""
    actor.require(export.permission)
    if period.start >= period.end:
        raise Invalid("end", "A period ends after its start.")
    _record(actor, export, period, now)
    with tenant(actor.tenant_id), connection.cursor() as cursor:
        parameters: dict[str, Any] = {
            "tenant": actor.tenant_id,
            "start": period.start,
            "end": period.end,
        }
        # Planned for all of its rows: without it Postgres hurries to the first tenth of them.
        cursor.execute("SET LOCAL cursor_tuple_fraction = 1")
        cursor.execute(f"DECLARE export NO SCROLL CURSOR FOR {export.query}", parameters)
        yield _batches(cursor)


def _batches(cursor: Any) -> Iterator[list[Row]]:
    while True:
        cursor.execute(f"FETCH FORWARD {BATCH_ROWS} FROM export")
        rows: list[Row] = cursor.fetchall()
        if not rows:
            return
        yield rows


def _record(actor: Actor, export: Export, period: Period, now: datetime) -> None:
    """In a transaction of its own, before anything is read: the entry holds the tenant's audit
    trail until its commit, and an export may take minutes."""
    with tenant(actor.tenant_id):
        record_read(
            actor=actor,
            action="export.read",
            target=f"export:{export.name}",
            asked={
                "version": export.version,
                "start": period.start.isoformat(),
                "end": period.end.isoformat(),
            },
            now=now,
        )
