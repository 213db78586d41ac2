"""What can be exported: the columns with their types, and the one query that gives them.

A query has the parameters %(tenant)s, %(start)s and %(end)s (half-open) and an order that its
primary key gives without sorting: so the first row is there at once, and memory stays as it is.
Changing what a column says is a new version.
"""

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from tenants.members.permissions import Permission
from tenants.metrics.counts import NAMES
from tenants.models.rollup import SERVICES


class Kind(StrEnum):
    """What a column holds; None beside it only where the column may be empty."""

    TEXT = "text"
    ID = "id"  # a UUID
    TIME = "time"  # UTC
    DAY = "day"  # UTC
    INTEGER = "integer"
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: Kind
    sql: str


@dataclass(frozen=True, slots=True)
class Export:
    name: str
    version: int
    permission: Permission
    columns: tuple[Column, ...]
    source: str  # what follows the columns

    @property
    def query(self) -> str:
        columns = ", ".join(f'{column.sql} AS "{column.name}"' for column in self.columns)
        return f"SELECT {columns} {self.source}"  # our own names only


def _columns(kind: Kind, *names: str) -> tuple[Column, ...]:
    return tuple(Column(name, kind, name) for name in names)


_WITHIN: Final = "WHERE tenant_id = %(tenant)s AND {time} >= %(start)s AND {time} < %(end)s"

# One row a request. Users are ids: who they are is in the export of members.
USAGE_RECORDS: Final = Export(
    name="usage_records",
    version=1,
    permission=Permission.READ_USAGE,
    columns=(
        *_columns(Kind.TIME, "occurred_at"),
        *_columns(Kind.ID, "request_id", "user_id", "key_id"),
        *_columns(Kind.TEXT, "protocol", "mode", "trigger", "language", "editor"),
        *_columns(Kind.TEXT, "tier", "pool", "model", "variant", "finish", "error_code"),
        *_columns(Kind.TEXT, "cut_reason"),
        *_columns(Kind.INTEGER, "prompt_tokens", "cached_tokens", "generated_tokens"),
        *_columns(Kind.INTEGER, "num_chars", "num_lines", "num_files", "num_snippets"),
        *_columns(Kind.NUMBER, "first_token_ms", "engine_ms", "total_ms"),
    ),
    source=f"FROM tenants_usage_record {_WITHIN.format(time='occurred_at')}"
    " ORDER BY tenant_id, occurred_at, request_id",
)

# One row for each day, user, editor, language, model and variant: the dashboard's own counts.
USAGE_DAYS: Final = Export(
    name="usage_days",
    version=1,
    permission=Permission.READ_USAGE,
    columns=(
        Column("day", Kind.DAY, "(starts_at AT TIME ZONE 'UTC')::date"),
        Column("user_id", Kind.ID, f"nullif(user_id, '{SERVICES}')"),
        *_columns(Kind.TEXT, "editor", "language", "model", "variant"),
        *_columns(Kind.INTEGER, *NAMES),
    ),
    source=f"FROM tenants_usage_day {_WITHIN.format(time='starts_at')}"
    " ORDER BY tenant_id, starts_at, user_id, editor, language, model, variant",
)

EXPORTS: Final = MappingProxyType({export.name: export for export in (USAGE_RECORDS, USAGE_DAYS)})
