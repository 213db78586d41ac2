"""The API's lists and the exports contain the same data, to the unit, in every format."""

import csv
import io
import json
import uuid
from collections.abc import Sequence
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
from tenants.privacy.consent.consent_texts import ConsentKind as Wording
from tenants.privacy.retention.purge import purge
from tenants.security.audit.operations import ChangeFields, record_change
from tenants.security.authorization.actor import Actor
from tests.fakes.billing import ensure_invoice
from tests.fakes.retention import make_certificate, make_hold
from tests.fakes.workbook import read_workbook
from tests.fixtures.companies import ACME, Cast, Company, make_company, make_key
from tests.fixtures.users import make_team
from tests.integration.console.conftest import SignIn
from tests.stack.services import Services

NOW: Final = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
ALWAYS: Final = Period(datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
# Export, and the API list with the same rows.
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
    """Make a company with an object of every kind."""
    with django_db_blocker.unblock():
        company = make_company("initech", ACME)
        fill(company)
    return company


def fill(acme: Company) -> None:
    with tenant_scope(acme.tenant_id):
        change: ChangeFields = {"text": "=cmd()", "limits": {"user": None}}
        record_change(
            actor=acme.administrator.actor,
            action="test.done",
            target="t",
            change=(None, change),
            now=timezone.now(),
        )
    make_key(acme, acme.developer, name="=HYPERLINK(1)")
    ensure_invoice(acme)
    make_hold(acme)
    make_certificate(acme)
    add_receipt(acme)
    purge(tenant_id=acme.tenant_id, data_class=DataClass.REPLAYS, now=timezone.now())
    set_override(
        actor=acme.platform,
        subject=OverrideSubject(SubjectKind.TEAM, uuid.UUID(make_team(acme))),
        document={"has_secret_filter": True},
        reason="-1",
        now=timezone.now(),
    )


def add_receipt(company: Company) -> None:
    with tenant_scope(company.tenant_id):
        ConsentReceipt.objects.create(
            tenant_id=company.tenant_id,
            number=ConsentReceipt.objects.filter(tenant_id=company.tenant_id).count() + 1,
            user_id=company.developer.user_id,
            kind=Wording.CONTENT_CAPTURE,
            is_given=False,
            wording="user-1",
            wording_sha256="00",
            request_id="",
            created_at=timezone.now(),
        )


def query_by(actor: Actor, period: Period = ALWAYS) -> RowQuery:
    return RowQuery(actor, period, timezone.now() + timedelta(seconds=1))


def written(export: Export, name: str, query: RowQuery) -> bytes:
    out = io.BytesIO()
    FORMATS[name](export, read_rows(export, query), out)
    return out.getvalue()


def exported(export: Export, query: RowQuery) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written(export, "ndjson", query).splitlines()]


def as_exported(kind: ColumnType, value: Any) -> Any:
    """Return the API's value as an export writes it."""
    if isinstance(value, list):
        return ", ".join(sorted(value))
    if isinstance(value, dict):
        return dump_json(value)
    if kind is ColumnType.TIME and value is not None:
        return to_milliseconds(format_time(datetime.fromisoformat(value)))
    return value


def to_milliseconds(value: Any) -> Any:
    """Return the time as the API writes it."""
    return value and f"{value[:-4]}000Z"


@pytest.mark.parametrize("name", LISTS)
def test_an_export_has_the_values_of_the_api_list(
    company: Company, sign_in: SignIn, name: str
) -> None:
    export, auditor = EXPORTS[name], company.people[Role.AUDITOR]

    found = exported(export, query_by(auditor.actor))

    answer = sign_in(auditor).get(f"/api/v1/{LISTS[name]}?limit=200").json()
    listed = answer.get("items", answer.get("classes"))
    if name == "audit":  # the audit entries of the export and the list came after it
        found = [row for row in found if row["action"] not in ("export.read", "audit.read")]
        listed = [row for row in listed if row["action"] not in ("export.read", "audit.read")]
    shared = [column for column in export.columns if column.name in listed[0]]
    assert len(shared) >= 4
    for row in found:
        row |= {
            column.name: to_milliseconds(row[column.name])
            for column in shared
            if column.kind is ColumnType.TIME
        }
    assert [[row[column.name] for column in shared] for row in found] == [
        [as_exported(column.kind, row[column.name]) for column in shared] for row in listed
    ]


@pytest.mark.parametrize("export", EXPORTS.values(), ids=list(EXPORTS))
def test_all_formats_have_the_same_values(company: Company, export: Export) -> None:
    query = query_by(company.people[Role.AUDITOR].actor)
    batches = list(read_rows(export, query))
    texts = {column.name for column in export.columns if column.kind is ColumnType.TEXT}

    in_ndjson = [json.loads(line) for line in formatted(export, "ndjson", batches).splitlines()]
    in_csv = csv.DictReader(io.StringIO(formatted(export, "csv", batches).decode(), newline=""))
    in_sheet = read_workbook(formatted(export, "xlsx", batches))
    in_parquet = parquet.read_table(io.BytesIO(formatted(export, "parquet", batches)))

    guarded = [
        {name: _guarded(value) if name in texts else value for name, value in row.items()}
        for row in in_ndjson
    ]
    assert list(in_csv) == [{name: _in_csv(row[name]) for name in row} for row in guarded]
    assert _falsy(in_sheet) == _falsy(guarded)
    assert [_in_json(row) for row in in_parquet.to_pylist()] == in_ndjson


def formatted(export: Export, name: str, batches: list[Sequence[Row]]) -> bytes:
    out = io.BytesIO()
    FORMATS[name](export, batches, out)
    return out.getvalue()


def _guarded(value: Any) -> Any:
    return f"'{value}" if str(value or "").startswith(("=", "-")) else value


def _in_json(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: format_time(value)
        if isinstance(value, datetime)
        else str(value)
        if isinstance(value, date)
        else value
        for name, value in row.items()
    }


def _in_csv(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _falsy(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value or None for name, value in row.items()} for row in rows]


@pytest.mark.parametrize("export", EXPORTS.values(), ids=list(EXPORTS))
def test_another_tenants_export_has_no_rows_of_this_tenant(
    company: Company, cast: Cast, export: Export
) -> None:
    text = written(export, "ndjson", query_by(cast.globex.administrator.actor)).decode()

    assert company.tenant_id not in text
    assert company.slug not in text


@pytest.mark.parametrize("export", EXPORTS.values(), ids=list(EXPORTS))
def test_a_developer_exports_only_data_that_they_may_list(cast: Cast, export: Export) -> None:
    if cast.acme.developer.actor.has_permission(export.permission):
        return

    with pytest.raises(Forbidden):
        read_rows(export, query_by(cast.acme.developer.actor))


def test_reading_in_pages_gives_the_same_rows_as_at_once(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = query_by(company.administrator.actor)
    at_once = exported(EXPORTS["keys"], query)
    monkeypatch.setattr(paged_source, "MAX_PAGE", 1)
    monkeypatch.setattr(paged_source, "BATCH_ROWS", 1)

    assert exported(EXPORTS["keys"], query) == at_once


def test_a_period_filters_rows_by_time(company: Company) -> None:
    long_ago = Period(datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 2, tzinfo=UTC))
    for name in ("policies", "consent", "invoices", "purges", "deletion_certificates", "audit"):
        assert exported(EXPORTS[name], query_by(company.administrator.actor, long_ago)) == []


def test_the_members_export_has_teams_sign_in_method_and_last_use(
    company: Company,
) -> None:
    ada = company.developer
    key = make_key(company, ada)
    team = make_team(company, "Shop")
    add_team_member(actor=company.platform, team_id=uuid.UUID(team), user_id=ada.user_id, now=NOW)
    with tenant_scope(company.tenant_id):
        ApiKey.objects.filter(lookup_id=key.key.lookup_id).update(last_used_at=NOW)

    rows = exported(EXPORTS["members"], query_by(company.administrator.actor))

    (row,) = (row for row in rows if row["user_id"] == ada.user_id)
    assert (row["role"], row["signs_in_by"]) == ("developer", "password")
    assert "Shop" in row["teams"]
    assert row["last_seen_at"] == format_time(NOW)


def test_the_keys_export_contains_no_secret(company: Company) -> None:
    key = make_key(company, company.developer)

    text = written(EXPORTS["keys"], "ndjson", query_by(company.administrator.actor)).decode()

    assert key.key.lookup_id in text
    assert key.text not in text
    assert not {"digest", "pepper"} & set(json.loads(text.splitlines()[0]))


def test_the_processing_record_has_the_fields_of_article_30(
    company: Company, settings: Any
) -> None:
    settings.SUBPROCESSORS = ["Example Cloud, hosts it in Frankfurt"]
    settings.TRANSFERS = ["none"]
    settings.DATA_PROTECTION_CONTACT = ["privacy@caret.example"]

    rows = exported(EXPORTS["processing"], query_by(company.people[Role.AUDITOR].actor))

    subjects = {row["subject"]: row for row in rows}
    assert {row["article"] for row in rows} >= {"30(2)(a)", "30(2)(b)", "30(2)(c)", "30(2)(d)"}
    assert subjects["controller"]["name"] == company.name
    assert subjects["subprocessor"]["statement"] == "hosts it in Frankfurt"
    days = {row["name"]: row["statement"] for row in rows if row["subject"].startswith("period")}
    retention = exported(EXPORTS["retention"], query_by(company.administrator.actor))
    assert days == {row["title"]: f"{row['days']} days" for row in retention}
