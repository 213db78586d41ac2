"""What an export is: a name and version that fix its columns, and where its rows come from."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from caret.foundation.ids import TenantId
from tenants.base.permissions import Permission
from tenants.compliance.exports.rows import ExportColumn, RowSource

# Up to when rows are complete, asked before the first of them is read; None: nothing is yet.
CompleteUntil = Callable[[TenantId, datetime], datetime | None]


def is_complete_now(_tenant_id: TenantId, now: datetime) -> datetime:
    """Of what is written in the transaction that makes it so: nothing of it is under way."""
    return now


@dataclass(frozen=True, slots=True)
class Export:
    name: str
    version: int
    title: str
    permission: Permission
    columns: tuple[ExportColumn, ...]
    source: RowSource
    complete_until: CompleteUntil = is_complete_now
    is_of_period: bool = True  # else it says what there is when it is read
