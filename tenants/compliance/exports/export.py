"""The definition of an export: a name, a version, the columns and the source of the rows.

An export with other columns needs another name or version.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from caret.foundation.ids import TenantId
from tenants.base.permissions import Permission
from tenants.compliance.exports.rows import ExportColumn, RowSource

# Called before the first row is read, with the tenant and `now`. Returns the time until which all
# rows exist; None: the rows are not complete for any period.
CompleteUntil = Callable[[TenantId, datetime], datetime | None]


def return_now(_tenant_id: TenantId, now: datetime) -> datetime:
    """Return `now`: rows are complete as soon as their transaction commits."""
    return now


@dataclass(frozen=True, slots=True)
class Export:
    name: str
    version: int
    title: str  # English; the console translates it
    permission: Permission  # to read the rows
    columns: tuple[ExportColumn, ...]
    source: RowSource
    complete_until: CompleteUntil = return_now
    is_of_period: bool = True  # False: the state at the time of reading
