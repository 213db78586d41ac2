"""Exports of policy versions, policy overrides and consent receipts."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.utils.translation import gettext_noop

from tenants.base.pagination import Page, map_page
from tenants.base.permissions import Permission
from tenants.compliance.exports.export import Export
from tenants.compliance.exports.paged_source import (
    BY_CREATION,
    PagedRows,
    dump_json,
    make_row_reader,
)
from tenants.compliance.exports.rows import ColumnType, ExportColumn, Row, RowQuery
from tenants.policy.availability.enforcement import (
    UnavailablePeriod,
    find_unenforced_periods,
    read_history,
)
from tenants.policy.document import serialize_policy
from tenants.policy.overrides.document import serialize_override
from tenants.policy.overrides.queries import OverrideInForce, list_overrides
from tenants.policy.queries import PolicyVersionView, find_version_ends, read_page_of_versions
from tenants.privacy.consent.queries import list_receipts

_VERSION_COLUMNS: Final = (
    ExportColumn("version", ColumnType.INTEGER),
    ExportColumn("created_at", ColumnType.TIME),
    ExportColumn("author_email", ColumnType.TEXT),
    ExportColumn("author_key", ColumnType.TEXT),
    ExportColumn("reason", ColumnType.TEXT),
)
_read_version_columns = make_row_reader(*(column.name for column in _VERSION_COLUMNS))


@dataclass(frozen=True, slots=True)
class _PolicyVersion:
    """A version of the policy, with the periods in which fields of it were not enforced."""

    version: PolicyVersionView
    not_enforced: dict[str, list[UnavailablePeriod]]  # by field

    @property
    def created_at(self) -> datetime:
        return self.version.created_at


def _read_page_of_policies(query: RowQuery, limit: int, cursor: str | None) -> Page[_PolicyVersion]:
    page = read_page_of_versions(actor=query.actor, limit=limit, cursor=cursor)
    ends = find_version_ends(actor=query.actor, versions=[row.version for row in page.rows])
    history = read_history()
    return map_page(
        page,
        lambda row: _PolicyVersion(
            row,
            find_unenforced_periods(
                row.policy,
                history,
                starts_at=row.created_at,
                ends_at=ends.get(row.version, query.now),
            ),
        ),
    )


def _to_policy_row(row: _PolicyVersion) -> Row:
    not_enforced = "; ".join(
        f"not enforced: {field} {period.starts_at.isoformat()} to {period.ends_at.isoformat()}"
        for field, periods in row.not_enforced.items()
        for period in periods
    )
    return (
        *_read_version_columns(row.version),
        dump_json(serialize_policy(row.version.policy)),
        not_enforced,
    )


POLICIES: Final = Export(
    name="policies",
    version=2,  # version 2 added the column not_enforced
    title=gettext_noop("Policy versions with author and reason"),
    permission=Permission.READ_POLICY,
    columns=(
        *_VERSION_COLUMNS,
        ExportColumn("policy", ColumnType.TEXT),
        ExportColumn("not_enforced", ColumnType.TEXT),
    ),
    source=PagedRows(
        fetch_page=_read_page_of_policies,
        make_row=_to_policy_row,
        get_time=BY_CREATION,
    ),
)


def _to_override_row(override: OverrideInForce) -> Row:
    subject: tuple[Any, ...] = (override.subject.kind.value, override.subject.id, override.name)
    return (
        *subject,
        *_read_version_columns(override),
        dump_json(serialize_override(override.override)),
    )


POLICY_OVERRIDES: Final = Export(
    name="policy_overrides",
    version=1,
    title=gettext_noop("Policy overrides for teams and users"),
    permission=Permission.READ_OVERRIDES,
    columns=(
        ExportColumn("kind", ColumnType.TEXT),
        ExportColumn("id", ColumnType.ID),
        ExportColumn("name", ColumnType.TEXT),
        *_VERSION_COLUMNS,
        ExportColumn("override", ColumnType.TEXT),
    ),
    source=PagedRows(
        fetch_page=lambda query, limit, cursor: list_overrides(
            actor=query.actor, limit=limit, cursor=cursor
        ),
        make_row=_to_override_row,
    ),
    is_of_period=False,
)

_RECEIPT_COLUMNS: Final = (
    ExportColumn("id", ColumnType.ID),
    ExportColumn("created_at", ColumnType.TIME),
    ExportColumn("user_id", ColumnType.ID),
    ExportColumn("user_email", ColumnType.TEXT),
    ExportColumn("kind", ColumnType.TEXT),
    ExportColumn("is_granted", ColumnType.BOOLEAN),
    ExportColumn("wording", ColumnType.TEXT),
    ExportColumn("wording_sha256", ColumnType.TEXT),
    ExportColumn("actor_email", ColumnType.TEXT),
    ExportColumn("policy_version", ColumnType.INTEGER),
    ExportColumn("address", ColumnType.TEXT),  # IP address
)
CONSENT: Final = Export(
    name="consent",
    version=1,
    title=gettext_noop("Consent receipts"),
    permission=Permission.READ_CONSENT,
    columns=_RECEIPT_COLUMNS,
    source=PagedRows(
        fetch_page=lambda query, limit, cursor: list_receipts(
            actor=query.actor, limit=limit, cursor=cursor
        ),
        make_row=make_row_reader(*(column.name for column in _RECEIPT_COLUMNS)),
        get_time=BY_CREATION,
    ),
)

EXPORTS: Final = (POLICIES, POLICY_OVERRIDES, CONSENT)
