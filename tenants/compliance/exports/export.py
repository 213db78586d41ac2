"""What an export is: a name and version that fix its columns, and where its rows come from."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from caret.foundation.ids import TenantId
from tenants.base.permissions import Permission
from tenants.compliance.exports.rows import Column, Source

# Up to when rows are complete, asked before the first of them is read; None: nothing is yet.
CompleteUntil = Callable[[TenantId, datetime], datetime | None]


def as_it_is(_tenant_id: TenantId, now: datetime) -> datetime:
    """Of what is written in the transaction that makes it so: nothing of it is under way."""
    return now


@dataclass(frozen=True, slots=True)
class Export:
    name: str
    version: int
    title: str
    permission: Permission
    columns: tuple[Column, ...]
    source: Source
    complete_until: CompleteUntil = as_it_is
    is_of_period: bool = True  # else it says what there is when it is read
