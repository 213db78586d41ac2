"""The API's lists and the exports contain the same rows and values, in every format."""

import csv
import io
import json
import uuid
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import pytest
from django.utils import timezone
from pyarrow import parquet
from pytest_django.plugin import DjangoDbBlocker

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Forbidden
from tenants.base.permissions import Role
from tenants.compliance.exports import paged_source
from tenants.compliance.exports.definitions.definitions import EXPORTS
from tenants.compliance.exports.export import Export
from tenants.compliance.exports.formats.cells import format_time
from tenants.compliance.exports.formats.text import FORMATS
from tenants.compliance.exports.paged_source import dump_json
from tenants.compliance.exports.row_stream import read_rows
from tenants.compliance.exports.rows import ColumnType, Period, Row, RowQuery
from tenants.identity.teams.operations import add_team_member
from tenants.models import ApiKey, ConsentReceipt
from tenants.policy.data_classes import DataClass
from tenants.policy.overrides.operations import set_override
from tenants.policy.overrides.queries import OverrideSubject, SubjectKind
from tenants.privacy.consent.consent_texts import ConsentKind
from tenants.privacy.retention.purge import purge_data_class
from tenants.security.audit.operations import ChangeFields, record_change
from tenants.security.authorization.actor import Actor
from tests.fakes.billing import ensure_invoice
from tests.fakes.retention import make_certificate, make_hold
from tests.fakes.workbook import read_workbook
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, make_company, make_key
from tests.fixtures.users import make_team
from tests.integration.console.conftest import SignIn
from tests.stack.services import Services

NOW: Final = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
ALWAYS: Final = Period(datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
# The path of the API list that has the same rows, by export.
LISTS: Final = {
    "audit": "audit",
    "members": "members",
    "keys": "keys",
    "policies": "policy/versions",
    "policy_overrides": "policy/overrides",
    "consent": "consent/receipts",
    "invoices": "invoices",
    "retention": "retention",
    "purges": "retention/runs",
    "legal_holds": "retention/holds",
    "deletion_certificates": "retention/certificates",
}


@pytest.fixture(scope="module")
def company(services: Services, django_db_blocker: DjangoDbBlocker) -> Company:
    """Make a company with a row in each export."""
    with django_db_blocker.unblock():
        company = make_company("initech", ACME_PEOPLE)
        add_row_of_each_export(company)
    return company


def add_row_of_each_export(company: Company) -> None:
    with tenant_scope(company.tenant_id):
        change: ChangeFields = {"text": "=cmd()", "limits": {"user": None}}
        record_change(
            actor=company.administrator.actor,
            action="test.done",
            target="t",
            change=(None, change),
            now=timezone.now(),
        )
    make_key(company, company.developer, name="=HYPERLINK(1)")
    ensure_invoice(company)
    make_hold(company)
    make_certificate(company)
    add_receipt(company)
    purge_data_class(
        tenant_id=company.tenant_id, data_class=DataClass.IDEMPOTENCY, now=timezone.now()
    )
    set_override(
        actor=company.platform,
        subject=OverrideSubject(SubjectKind.TEAM, uuid.UUID(make_team(company))),
        document={"has_secret_filter": True},
        reason="-1",  # like a formula
        now=timezone.now(),
    )


def add_receipt(company: Company) -> None:
    with tenant_scope(company.tenant_id):
        ConsentReceipt.objects.create(
            tenant_id=company.tenant_id,
            number=ConsentReceipt.objects.filter(tenant_id=company.tenant_id).count() + 1,
            user_id=company.developer.user_id,
            kind=ConsentKind.CONTENT_CAPTURE,
            is_granted=False,
            wording="user-1",
            wording_sha256="00",
            request_id="",
            created_at=timezone.now(),
        )


def make_query(actor: Actor, period: Period = ALWAYS) -> RowQuery:
    return RowQuery(actor, period, timezone.now() + timedelta(seconds=1))


def write_export(export: Export, format_name: str, query: RowQuery) -> bytes:
    out = io.BytesIO()
    FORMATS[format_name](export, read_rows(export, query), out)
    return out.getvalue()


def read_export(export: Export, query: RowQuery) -> list[dict[str, Any]]:
    return [json.loads(line) for line in write_export(export, "ndjson", query).splitlines()]


def to_exported_value(kind: ColumnType, value: Any) -> Any:
    """Return the API's value as an export writes it."""
    if isinstance(value, list):
        return ", ".join(sorted(value))
    if isinstance(value, dict):
        return dump_json(value)
    if kind is ColumnType.TIME and value is not None:
        return to_milliseconds(format_time(datetime.fromisoformat(value)))
    return value


def to_milliseconds(value: Any) -> Any:
    """Return the exported time cut to milliseconds, as the API writes it; None stays None.

    2026-11-20T12:30:00.123456Z becomes 2026-11-20T12:30:00.123000Z.
    """
    return value and f"{value[:-4]}000Z"


@pytest.mark.parametrize("name", LISTS)
def test_an_export_has_the_values_of_the_api_list(
    company: Company, sign_in: SignIn, name: str
) -> None:
    export, auditor = EXPORTS[name], company.people[Role.AUDITOR]

    exported_rows = read_export(export, make_query(auditor.actor))

    page = sign_in(auditor).get(f"/api/v1/{LISTS[name]}?limit=200").json()
    listed_rows = page.get("items", page.get("classes"))
    if name == "audit":  # reading the export and the list has added entries
        exported_rows = [
            row for row in exported_rows if row["action"] not in ("export.read", "audit.read")
        ]
        listed_rows = [
            row for row in listed_rows if row["action"] not in ("export.read", "audit.read")
        ]
    shared_columns = [column for column in export.columns if column.name in listed_rows[0]]
    assert len(shared_columns) >= 4
    for row in exported_rows:
        row |= {
            column.name: to_milliseconds(row[column.name])
            for column in shared_columns
            if column.kind is ColumnType.TIME
        }
    assert [[row[column.name] for column in shared_columns] for row in exported_rows] == [
        [to_exported_value(column.kind, row[column.name]) for column in shared_columns]
        for row in listed_rows
    ]


@pytest.mark.parametrize("export", EXPORTS.values(), ids=list(EXPORTS))
def test_all_formats_have_the_same_values(company: Company, export: Export) -> None:
    query = make_query(company.people[Role.AUDITOR].actor)
    batches = list(read_rows(export, query))
    texts = {column.name for column in export.columns if column.kind is ColumnType.TEXT}

    in_ndjson = [json.loads(line) for line in write_batches(export, "ndjson", batches).splitlines()]
    in_csv = csv.DictReader(io.StringIO(write_batches(export, "csv", batches).decode(), newline=""))
    in_sheet = read_workbook(write_batches(export, "xlsx", batches))
    in_parquet = parquet.read_table(io.BytesIO(write_batches(export, "parquet", batches)))

    escaped_rows = [
        {name: _guard_formula(value) if name in texts else value for name, value in row.items()}
        for row in in_ndjson
    ]
    assert list(in_csv) == [{name: _to_csv_cell(row[name]) for name in row} for row in escaped_rows]
    assert _replace_falsy(in_sheet) == _replace_falsy(escaped_rows)
    assert [_to_json_values(row) for row in in_parquet.to_pylist()] == in_ndjson


def write_batches(export: Export, format_name: str, batches: list[Sequence[Row]]) -> bytes:
    out = io.BytesIO()
    FORMATS[format_name](export, batches, out)
    return out.getvalue()


def _guard_formula(value: Any) -> Any:
    """Put an apostrophe before a text that looks like a formula, as CSV files and sheets do."""
    return f"'{value}" if str(value or "").startswith(("=", "-")) else value


def _to_json_values(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a Parquet file with dates and times as text."""
    return {name: _to_json_value(value) for name, value in row.items()}


def _to_json_value(value: Any) -> Any:
    if isinstance(value, datetime):  # first, because a datetime is also a date
        return format_time(value)
    return str(value) if isinstance(value, date) else value


def _to_csv_cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _replace_falsy(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Replace empty text by None, because a sheet has no cell for it.

    This also replaces 0 and False.
    """
    return [{name: value or None for name, value in row.items()} for row in rows]


@pytest.mark.parametrize("export", EXPORTS.values(), ids=list(EXPORTS))
def test_another_tenants_export_has_no_rows_of_this_tenant(
    company: Company, cast: Cast, export: Export
) -> None:
    text = write_export(export, "ndjson", make_query(cast.globex.administrator.actor)).decode()

    assert company.tenant_id not in text
    assert company.slug not in text


@pytest.mark.parametrize("export", EXPORTS.values(), ids=list(EXPORTS))
def test_a_developer_exports_only_data_that_they_may_list(cast: Cast, export: Export) -> None:
    developer = cast.acme.developer.actor
    is_allowed = developer.has_permission(export.permission)

    with nullcontext() if is_allowed else pytest.raises(Forbidden):
        read_rows(export, make_query(developer))


def test_an_export_read_in_several_pages_has_the_same_rows(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        make_key(company, company.developer)
    query = make_query(company.administrator.actor)
    rows_of_one_page = read_export(EXPORTS["keys"], query)
    monkeypatch.setattr(paged_source, "MAX_PAGE", 1)
    monkeypatch.setattr(paged_source, "BATCH_ROWS", 1)

    assert len(rows_of_one_page) >= 3
    assert read_export(EXPORTS["keys"], query) == rows_of_one_page


def test_a_period_filters_rows_by_time(company: Company) -> None:
    long_ago = Period(datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 2, tzinfo=UTC))
    for name in ("policies", "consent", "invoices", "purges", "deletion_certificates", "audit"):
        assert read_export(EXPORTS[name], make_query(company.administrator.actor, long_ago)) == []


def test_the_members_export_has_teams_sign_in_method_and_last_use(
    company: Company,
) -> None:
    ada = company.developer
    key = make_key(company, ada)
    team = make_team(company, "Shop")
    add_team_member(actor=company.platform, team_id=uuid.UUID(team), user_id=ada.user_id, now=NOW)
    with tenant_scope(company.tenant_id):
        ApiKey.objects.filter(lookup_id=key.key.lookup_id).update(last_used_at=NOW)

    rows = read_export(EXPORTS["members"], make_query(company.administrator.actor))

    (row,) = (row for row in rows if row["user_id"] == ada.user_id)
    assert (row["role"], row["signs_in_by"]) == ("developer", "password")
    assert "Shop" in row["teams"]
    assert row["last_seen_at"] == format_time(NOW)


def test_the_keys_export_contains_no_secret(company: Company) -> None:
    key = make_key(company, company.developer)

    text = write_export(EXPORTS["keys"], "ndjson", make_query(company.administrator.actor)).decode()

    assert key.key.lookup_id in text
    assert key.text not in text
    assert not {"digest", "pepper"} & set(json.loads(text.splitlines()[0]))


def test_the_processing_record_has_the_fields_of_article_30(
    company: Company, settings: Any
) -> None:
    """The record of processing activities, which Article 30 of the GDPR requires."""
    settings.SUBPROCESSORS = ["Example Cloud, hosts it in Frankfurt"]  # name, statement
    settings.TRANSFERS = ["none"]
    settings.DATA_PROTECTION_CONTACT = ["privacy@caret.example"]

    rows = read_export(EXPORTS["processing"], make_query(company.people[Role.AUDITOR].actor))

    subjects = {row["subject"]: row for row in rows}
    assert {row["article"] for row in rows} >= {"30(2)(a)", "30(2)(b)", "30(2)(c)", "30(2)(d)"}
    assert subjects["controller"]["name"] == company.name
    assert subjects["subprocessor"]["statement"] == "hosts it in Frankfurt"
    days = {row["name"]: row["statement"] for row in rows if row["subject"].startswith("period")}
    retention = read_export(EXPORTS["retention"], make_query(company.administrator.actor))
    assert days == {row["title"]: f"{row['days']} days" for row in retention}
