"""The audit trail as rows. Who wants to verify the chain itself takes `export_audit`'s form."""

from datetime import datetime
from typing import Final

from django.utils.translation import gettext_noop

from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.compliance.exports.export import Export
from tenants.compliance.exports.paged_source import PagedRows, fields, spell
from tenants.compliance.exports.rows import Asked, Column, Kind, Row
from tenants.security.audit.queries import Asked as AskedEntries
from tenants.security.audit.queries import EntryView, page_of_entries

_BEFORE: Final = (
    Column("sequence", Kind.INTEGER),
    Column("id", Kind.ID),
    Column("at", Kind.TIME),
    Column("actor_kind", Kind.TEXT),
    Column("actor_id", Kind.ID),
    Column("actor_email", Kind.TEXT),
    Column("actor_key", Kind.TEXT),
    Column("action", Kind.TEXT),
    Column("target", Kind.TEXT),
)
_CHANGE: Final = (Column("before", Kind.TEXT), Column("after", Kind.TEXT))
_AFTER: Final = (
    Column("address", Kind.TEXT),
    Column("request_id", Kind.TEXT),
    Column("reason", Kind.TEXT),
    Column("previous_hash", Kind.TEXT),
    Column("hash", Kind.TEXT),
)
_before = fields(*(column.name for column in _BEFORE))
_after = fields(*(column.name for column in _AFTER))


def _page(asked: Asked, limit: int, cursor: str | None) -> Page[EntryView]:
    entries = AskedEntries(since=asked.period.start, until=_until(asked))
    return page_of_entries(actor=asked.actor, asked=entries, limit=limit, cursor=cursor)


def _until(asked: Asked) -> datetime:
    """What is added while it is read is no part of it."""
    return min(asked.period.end, asked.now)


def _row(entry: EntryView) -> Row:
    change = (None if each is None else spell(each) for each in (entry.before, entry.after))
    return (*_before(entry), *change, *_after(entry))


AUDIT: Final = Export(
    name="audit",
    version=1,
    title=gettext_noop("Audit entries"),
    permission=Permission.READ_AUDIT,
    columns=(*_BEFORE, *_CHANGE, *_AFTER),
    source=PagedRows(page=_page, row=_row),
)

EXPORTS: Final = (AUDIT,)
