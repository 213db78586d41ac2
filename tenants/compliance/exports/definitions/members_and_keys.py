"""Who may do what, and by which keys: as it is now."""

from typing import Final

from django.utils.translation import gettext_noop

from tenants.base.permissions import Permission
from tenants.compliance.exports.export import Export
from tenants.compliance.exports.paged_source import PagedRows, fields
from tenants.compliance.exports.rows import Column, Kind
from tenants.identity.api_keys.queries import list_keys
from tenants.identity.members.directory import page_of_directory

_MEMBER: Final = (
    Column("user_id", Kind.ID),
    Column("email", Kind.TEXT),
    Column("name", Kind.TEXT),
    Column("role", Kind.TEXT),
    Column("teams", Kind.TEXT),
    Column("signs_in_by", Kind.TEXT),
    Column("created_at", Kind.TIME),
    Column("last_seen_at", Kind.TIME),
)
MEMBERS: Final = Export(
    name="members",
    version=1,
    title=gettext_noop("Members, their roles, teams and ways of signing in"),
    permission=Permission.READ_MEMBERS,
    columns=_MEMBER,
    source=PagedRows(
        page=lambda asked, limit, cursor: page_of_directory(
            actor=asked.actor, limit=limit, cursor=cursor
        ),
        row=fields(*(column.name for column in _MEMBER)),
    ),
    is_of_period=False,
)

# What a key is and may do; nothing of its text.
_KEY: Final = (
    Column("lookup_id", Kind.TEXT),
    Column("kind", Kind.TEXT),
    Column("name", Kind.TEXT),
    Column("owner_id", Kind.ID),
    Column("owner_email", Kind.TEXT),
    Column("state", Kind.TEXT),
    Column("scopes", Kind.TEXT),
    Column("networks", Kind.TEXT),
    Column("created_at", Kind.TIME),
    Column("issued_at", Kind.TIME),
    Column("expires_at", Kind.TIME),
    Column("last_used_at", Kind.TIME),
    Column("revoked_at", Kind.TIME),
    Column("previous_ends_at", Kind.TIME),
)
KEYS: Final = Export(
    name="keys",
    version=1,
    title=gettext_noop("API keys"),
    permission=Permission.READ_KEYS,
    columns=_KEY,
    source=PagedRows(
        page=lambda asked, limit, cursor: list_keys(
            actor=asked.actor, limit=limit, cursor=cursor, now=asked.now
        ),
        row=fields(*(column.name for column in _KEY)),
    ),
    is_of_period=False,
)

EXPORTS: Final = (MEMBERS, KEYS)
