"""Exports: the same rows in every format, only the tenant's own, and only the requested ones."""

import csv
import hashlib
import io
import json
import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from pyarrow import parquet

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Forbidden, InvalidValue
from tenants.base.permissions import Role
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.compliance.exports import sql_source
from tenants.compliance.exports.definitions.definitions import EXPORTS
from tenants.compliance.exports.definitions.usage import USAGE_DAYS, USAGE_RECORDS
from tenants.compliance.exports.export import Export
from tenants.compliance.exports.formats import xlsx
from tenants.compliance.exports.formats.parquet import write_parquet
from tenants.compliance.exports.formats.text import FORMATS, write_csv, write_ndjson
from tenants.compliance.exports.formats.xlsx import remove_abandoned_folders, scratch_folder
from tenants.compliance.exports.proof import start_proof
from tenants.compliance.exports.row_stream import read_rows
from tenants.compliance.exports.rows import Period, Row, RowQuery
from tenants.compliance.exports.verification import verify_export
from tenants.models import AuditEntry
from tenants.security.authorization.actor import Actor
from tenants.usage.reports.queries import ReportKind, ReportQuery, read_report
from tenants.usage.rollups.operations import MAX_RECORD_DELAY, roll_up_tenant
from tests.fakes.workbook import read_workbook
from tests.fixtures.companies import ACME_PEOPLE, GLOBEX_PEOPLE, Company, make_company, make_key
from tests.integration.tenants.records import NOON, add_completion

DAY = Period(NOON.replace(hour=0, minute=0), NOON.replace(hour=0, minute=0) + timedelta(days=1))


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME_PEOPLE)


def rows_of(company: Company, export: Export) -> Iterator[Sequence[Row]]:
    return read_rows(export, RowQuery(company.administrator.actor, DAY, NOON))


def export_rows(
    company: Company,
    export: Export = USAGE_RECORDS,
    *,
    period: Period = DAY,
    actor: Actor | None = None,
) -> list[dict[str, Any]]:
    """Return the exported rows. Without an actor, the administrator exports them."""
    out = io.BytesIO()
    actor = actor or company.administrator.actor
    write_ndjson(export, read_rows(export, RowQuery(actor, period, NOON)), out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_request_is_exported_with_its_values(company: Company) -> None:
    request_id = add_completion(company, first_token_ms=43.5)

    (row,) = export_rows(company)

    assert (row["request_id"], row["user_id"]) == (str(request_id), company.developer.user_id)
    assert (row["occurred_at"], row["first_token_ms"]) == ("2026-11-20T12:30:00.000000Z", 43.5)
    assert (row["language"], row["generated_tokens"], row["variant"]) == ("python", 10, None)


def test_csv_and_ndjson_have_the_same_values(company: Company) -> None:
    for minutes in range(5):
        add_completion(company, at=NOON + timedelta(minutes=minutes))
    out = io.BytesIO()

    digest = write_csv(USAGE_RECORDS, rows_of(company, USAGE_RECORDS), out)

    rows = list(csv.DictReader(io.StringIO(out.getvalue().decode(), newline="")))
    as_text = [
        {name: "" if value is None else str(value) for name, value in row.items()}
        for row in export_rows(company)
    ]
    assert rows == as_text
    assert (digest.rows, digest.num_bytes) == (5, len(out.getvalue()))
    assert digest.sha256 == hashlib.sha256(out.getvalue()).hexdigest()


def test_parquet_has_the_same_values_with_types(company: Company) -> None:
    for minutes in range(3):
        add_completion(company, at=NOON + timedelta(minutes=minutes), first_token_ms=1.5)
    out = io.BytesIO()

    digest = write_parquet(USAGE_RECORDS, rows_of(company, USAGE_RECORDS), out)

    table = parquet.read_table(io.BytesIO(out.getvalue()))
    rows = [
        row | {"occurred_at": row["occurred_at"].strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
        for row in table.to_pylist()
    ]
    assert rows == export_rows(company)
    assert table.schema.metadata == {b"export": b"usage_records", b"version": b"1"}
    assert (digest.rows, digest.num_bytes) == (3, len(out.getvalue()))
    assert digest.sha256 == hashlib.sha256(out.getvalue()).hexdigest()


@pytest.mark.parametrize("export", EXPORTS.values(), ids=list(EXPORTS))
def test_parquet_without_rows_has_its_columns(company: Company, export: Export) -> None:
    out = io.BytesIO()

    write_parquet(export, [], out)

    table = parquet.read_table(io.BytesIO(out.getvalue()))
    assert table.column_names == [column.name for column in export.columns]
    assert table.num_rows == 0


def test_rows_of_several_batches_come_in_order(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_source, "BATCH_ROWS", 2)
    for minutes in (4, 0, 3, 1, 2):
        add_completion(company, at=NOON + timedelta(minutes=minutes))

    times = [row["occurred_at"] for row in export_rows(company)]

    assert len(times) == 5
    assert times == sorted(times)


def test_daily_exports_agree_with_the_report(company: Company) -> None:
    for number in range(7):
        add_completion(company, language="go" if number % 2 else "c", num_chars=number + 1)
    roll_up_tenant(tenant_id=company.tenant_id, arrived_until=timezone.now())

    rows = export_rows(company, USAGE_DAYS)

    query = ReportQuery(DAY.start.date(), DAY.end.date())
    counts = read_report(
        actor=company.administrator.actor, kind=ReportKind.USAGE, query=query
    ).total.counts
    assert counts is not None
    assert {row["day"] for row in rows} == {"2026-11-20"}
    for name in ("requests", "suggested_chars", "generated_tokens"):
        assert sum(row[name] for row in rows) == getattr(counts, name)


def test_a_period_includes_its_start_and_excludes_its_end(company: Company) -> None:
    add_completion(company, at=DAY.start)
    add_completion(company, at=DAY.end)

    assert len(export_rows(company)) == 1


@pytest.mark.parametrize("export", EXPORTS.values(), ids=list(EXPORTS))
def test_an_export_contains_no_identifiers_of_another_tenant(
    company: Company, export: Export
) -> None:
    other_company = make_company("hooli", GLOBEX_PEOPLE)
    make_key(company, company.developer)
    add_completion(company)
    roll_up_tenant(tenant_id=company.tenant_id, arrived_until=timezone.now())

    rows = export_rows(other_company, export, actor=other_company.administrator.actor)

    foreign_names = (
        company.tenant_id,
        company.slug,
        *(person.user_id for person in company.people.values()),
    )
    assert not any(name in json.dumps(rows) for name in foreign_names)


@pytest.mark.parametrize("export", [USAGE_RECORDS, USAGE_DAYS])
def test_an_export_contains_no_usage_of_another_tenant(company: Company, export: Export) -> None:
    other_company = make_company("hooli", GLOBEX_PEOPLE)
    add_completion(company)
    roll_up_tenant(tenant_id=company.tenant_id, arrived_until=timezone.now())

    assert export_rows(other_company, export, actor=other_company.administrator.actor) == []
    assert len(export_rows(company, export)) == 1


@pytest.mark.parametrize("role", [Role.DEVELOPER])
def test_exporting_usage_requires_permission_to_see_all_of_it(company: Company, role: Role) -> None:
    with pytest.raises(Forbidden):
        export_rows(company, actor=company.people[role].actor)


def test_an_empty_period_is_refused(company: Company) -> None:
    with pytest.raises(InvalidValue):
        export_rows(company, period=Period(NOON, NOON))


def test_an_export_is_audited(company: Company) -> None:
    export_rows(company)

    with tenant_scope(company.tenant_id):
        entry = AuditEntry.objects.get(action="export.read")
    assert entry.target == "export:usage_records"
    assert str(entry.actor_id) == company.administrator.user_id


def test_an_export_without_rows_has_its_header(company: Company) -> None:
    out = io.BytesIO()

    write_csv(USAGE_RECORDS, rows_of(company, USAGE_RECORDS), out)

    assert out.getvalue().startswith(b"occurred_at,request_id,")
    assert out.getvalue().count(b"\r\n") == 1


@pytest.mark.parametrize("text", ["=1+1", "@SUM(A1)", "-2", "+3", 'a "quoted", one', "é\n"])
def test_a_csv_file_escapes_formulas(company: Company, text: str) -> None:
    add_completion(company, model=text)
    out = io.BytesIO()

    write_csv(USAGE_RECORDS, rows_of(company, USAGE_RECORDS), out)

    # An apostrophe before a formula makes a spreadsheet show it as text.
    (row,) = csv.DictReader(io.StringIO(out.getvalue().decode(), newline=""))
    assert row["model"].removeprefix("'") == text
    assert not row["model"].startswith(("=", "@", "-", "+"))


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_the_command_writes_a_private_file_with_a_proof(
    company: Company, tmp_path: Path, name: str
) -> None:
    add_completion(company)
    out, output = tmp_path / "usage", io.StringIO()

    call_command(
        "export_usage",
        *(company.slug, "--from=2026-11-20", "--to=2026-11-21"),
        *(f"--format={name}", f"--out={out}"),
        stdout=output,
    )

    digest = hashlib.sha256(out.read_bytes()).hexdigest()
    assert output.getvalue().strip() == f"1 rows, SHA-256 {digest}"
    assert out.stat().st_mode & 0o077 == 0, "other users have access to the file"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["usage", "usage.proof.json"]


def test_a_failed_export_leaves_no_file(company: Company, tmp_path: Path) -> None:
    """The export fails, because its period is empty."""
    with pytest.raises(CommandError):
        call_command(
            "export_usage",
            *(company.slug, "--from=2026-11-20", "--to=2026-11-20", f"--out={tmp_path / 'x'}"),
        )

    assert list(tmp_path.iterdir()) == []


def test_times_are_exported_in_utc(company: Company) -> None:
    add_completion(company, at=datetime.fromisoformat("2026-11-20T13:30:00+01:00"))

    assert export_rows(company)[0]["occurred_at"] == "2026-11-20T12:30:00.000000Z"


def export_workbook(company: Company) -> bytes:
    """Return the exported usage records as a workbook."""
    out = io.BytesIO()
    FORMATS["xlsx"](USAGE_RECORDS, rows_of(company, USAGE_RECORDS), out)
    return out.getvalue()


def test_a_workbook_has_the_same_values(company: Company) -> None:
    for minutes in range(3):
        add_completion(company, at=NOON + timedelta(minutes=minutes), first_token_ms=1.5)

    assert read_workbook(export_workbook(company)) == export_rows(company)


# Spreadsheets also read the full-width ＝ as an equals sign.
@pytest.mark.parametrize("text", ["=1+1", "@SUM(A1)", "-2", "\n=2", "＝2", "http://a.example"])
def test_a_workbook_escapes_formulas_and_has_no_links(company: Company, text: str) -> None:
    add_completion(company, model=text)

    (row,) = read_workbook(export_workbook(company))

    escaped_text = text if text.startswith("http") else f"'{text}"
    assert row["model"] == escaped_text


def test_the_same_rows_give_the_same_workbook(company: Company) -> None:
    add_completion(company)

    assert export_workbook(company) == export_workbook(company)


def test_more_rows_than_a_sheet_can_hold_are_refused(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xlsx, "MAX_ROWS", 1)
    for minutes in range(2):
        add_completion(company, at=NOON + timedelta(minutes=minutes))

    with pytest.raises(InvalidValue, match="at most 1 rows"):
        export_workbook(company)


def test_a_text_longer_than_a_cell_can_hold_is_refused(company: Company) -> None:
    add_completion(company, model="x" * 32_768)

    with pytest.raises(InvalidValue, match="32,767 characters"):
        export_workbook(company)


def test_files_of_a_killed_writer_are_removed(
    company: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    orphaned_folder = tmp_path / "caret-export-left"
    orphaned_folder.mkdir()
    (orphaned_folder / "lock").touch()

    with scratch_folder() as scratch:
        remove_abandoned_folders()
        assert list(tmp_path.iterdir()) == [scratch]
        assert scratch.stat().st_mode & 0o077 == 0, "other users have access to the folder"
    assert list(tmp_path.iterdir()) == []


def test_a_file_and_its_proof_verify(company: Company, tmp_path: Path) -> None:
    add_completion(company)
    out = tmp_path / "usage.csv"

    call_command(
        "export_usage",
        *(company.slug, "--from=2026-11-20", "--to=2026-11-21", f"--out={out}"),
        stdout=io.StringIO(),
    )

    proof = (tmp_path / "usage.csv.proof.json").read_bytes()
    with out.open("rb") as data:
        document = verify_export(data, proof, load_signing_keys().public_keys())
    assert (document["tenant"], document["file"]) == (company.slug, "usage.csv")
    assert (document["definition"], document["version"], document["rows"]) == (
        "usage_records",
        1,
        1,
    )
    assert document["since"] == "2026-11-20T00:00:00.000000Z"
    before, after = document["audit"]["before"], document["audit"]["after"]
    with tenant_scope(company.tenant_id):
        entry = AuditEntry.objects.get(action="export.read")
    assert (before["sequence"] + 1, after["sequence"]) == (entry.sequence, entry.sequence)
    assert after["hash"] == bytes(entry.hash).hex()


def test_a_proof_states_until_when_its_rows_are_complete(company: Company) -> None:
    query = RowQuery(company.administrator.actor, DAY, NOON)

    assert start_proof(USAGE_DAYS, query).complete_until is None
    assert start_proof(USAGE_RECORDS, query).complete_until == NOON - MAX_RECORD_DELAY
    roll_up_tenant(tenant_id=company.tenant_id, arrived_until=NOON)
    assert start_proof(USAGE_DAYS, query).complete_until == NOON - MAX_RECORD_DELAY
