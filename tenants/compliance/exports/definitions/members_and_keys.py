"""Exports of members and API keys, as they are now."""

from typing import Final

from django.utils.translation import gettext_noop

from tenants.base.permissions import Permission
from tenants.compliance.exports.export import Export
from tenants.compliance.exports.paged_source import PagedRows, make_row_reader
from tenants.compliance.exports.rows import ColumnType, ExportColumn
from tenants.identity.api_keys.queries import list_keys
from tenants.identity.members.directory import read_page_of_directory

_MEMBER_COLUMNS: Final = (
    ExportColumn("user_id", ColumnType.ID),
    ExportColumn("email", ColumnType.TEXT),
    ExportColumn("name", ColumnType.TEXT),
    ExportColumn("role", ColumnType.TEXT),
    ExportColumn("teams", ColumnType.TEXT),
    ExportColumn("signs_in_by", ColumnType.TEXT),
    ExportColumn("created_at", ColumnType.TIME),
    ExportColumn("last_seen_at", ColumnType.TIME),
)
MEMBERS: Final = Export(
    name="members",
    version=1,
    title=gettext_noop("Members with roles, teams and sign-in methods"),
    permission=Permission.READ_MEMBERS,
    columns=_MEMBER_COLUMNS,
    source=PagedRows(
        fetch_page=lambda query, limit, cursor: read_page_of_directory(
            actor=query.actor, limit=limit, cursor=cursor
        ),
        make_row=make_row_reader(*(column.name for column in _MEMBER_COLUMNS)),
    ),
    is_of_period=False,
)

# Properties and permissions of a key, without its text.
_KEY_COLUMNS: Final = (
    ExportColumn("lookup_id", ColumnType.TEXT),
    ExportColumn("kind", ColumnType.TEXT),
    ExportColumn("name", ColumnType.TEXT),
    ExportColumn("owner_id", ColumnType.ID),
    ExportColumn("owner_email", ColumnType.TEXT),
    ExportColumn("state", ColumnType.TEXT),
    ExportColumn("scopes", ColumnType.TEXT),
    ExportColumn("networks", ColumnType.TEXT),
    ExportColumn("created_at", ColumnType.TIME),
    ExportColumn("issued_at", ColumnType.TIME),
    ExportColumn("expires_at", ColumnType.TIME),
    ExportColumn("last_used_at", ColumnType.TIME),
    ExportColumn("revoked_at", ColumnType.TIME),
    # Until this time, the text that a key had before its rotation is still valid.
    ExportColumn("previous_ends_at", ColumnType.TIME),
)
KEYS: Final = Export(
    name="keys",
    version=1,
    title=gettext_noop("API keys"),
    permission=Permission.READ_KEYS,
    columns=_KEY_COLUMNS,
    source=PagedRows(
        fetch_page=lambda query, limit, cursor: list_keys(
            actor=query.actor, limit=limit, cursor=cursor, now=query.now
        ),
        make_row=make_row_reader(*(column.name for column in _KEY_COLUMNS)),
    ),
    is_of_period=False,
)

EXPORTS: Final = (MEMBERS, KEYS)
