"""Exports of policies with their authors and reasons, and of consent receipts."""

from typing import Any, Final

from django.utils.translation import gettext_noop

from tenants.base.permissions import Permission
from tenants.compliance.exports.export import Export
from tenants.compliance.exports.paged_source import BY_CREATION, PagedRows, fields, spell
from tenants.compliance.exports.rows import ColumnType, ExportColumn, Row
from tenants.policy.document import write_policy
from tenants.policy.overrides.document import override_document
from tenants.policy.overrides.queries import OverrideInForce, list_overrides
from tenants.policy.queries import PolicyInForce, page_of_versions
from tenants.privacy.consent.queries import list_receipts

_WHO: Final = (
    ExportColumn("version", ColumnType.INTEGER),
    ExportColumn("created_at", ColumnType.TIME),
    ExportColumn("author_email", ColumnType.TEXT),
    ExportColumn("author_key", ColumnType.TEXT),
    ExportColumn("reason", ColumnType.TEXT),
)
_who = fields(*(column.name for column in _WHO))


def _policy_row(version: PolicyInForce) -> Row:
    return (*_who(version), spell(write_policy(version.policy)))


POLICIES: Final = Export(
    name="policies",
    version=1,
    title=gettext_noop("Policy versions with author and reason"),
    permission=Permission.READ_POLICY,
    columns=(*_WHO, ExportColumn("policy", ColumnType.TEXT)),
    source=PagedRows(
        page=lambda query, limit, cursor: page_of_versions(
            actor=query.actor, limit=limit, cursor=cursor
        ),
        row=_policy_row,
        made_at=BY_CREATION,
    ),
)


def _override_row(override: OverrideInForce) -> Row:
    subject: tuple[Any, ...] = (override.subject.kind.value, override.subject.id, override.name)
    return (*subject, *_who(override), spell(override_document(override.override)))


POLICY_LAYERS: Final = Export(
    name="policy_overrides",
    version=1,
    title=gettext_noop("Policy overrides for teams and users"),
    permission=Permission.READ_OVERRIDES,
    columns=(
        ExportColumn("kind", ColumnType.TEXT),
        ExportColumn("id", ColumnType.ID),
        ExportColumn("name", ColumnType.TEXT),
        *_WHO,
        ExportColumn("override", ColumnType.TEXT),
    ),
    source=PagedRows(
        page=lambda query, limit, cursor: list_overrides(
            actor=query.actor, limit=limit, cursor=cursor
        ),
        row=_override_row,
    ),
    is_of_period=False,
)

_RECEIPT: Final = (
    ExportColumn("id", ColumnType.ID),
    ExportColumn("created_at", ColumnType.TIME),
    ExportColumn("user_id", ColumnType.ID),
    ExportColumn("user_email", ColumnType.TEXT),
    ExportColumn("kind", ColumnType.TEXT),
    ExportColumn("is_given", ColumnType.TRUTH),
    ExportColumn("wording", ColumnType.TEXT),
    ExportColumn("wording_sha256", ColumnType.TEXT),
    ExportColumn("actor_email", ColumnType.TEXT),
    ExportColumn("policy_version", ColumnType.INTEGER),
    ExportColumn("address", ColumnType.TEXT),
)
CONSENT: Final = Export(
    name="consent",
    version=1,
    title=gettext_noop("Consent receipts"),
    permission=Permission.READ_CONSENT,
    columns=_RECEIPT,
    source=PagedRows(
        page=lambda query, limit, cursor: list_receipts(
            actor=query.actor, limit=limit, cursor=cursor
        ),
        row=fields(*(column.name for column in _RECEIPT)),
        made_at=BY_CREATION,
    ),
)

EXPORTS: Final = (POLICIES, POLICY_LAYERS, CONSENT)
