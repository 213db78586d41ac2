"""Exports: the same rows in every format, only the tenant's own, and no more than was asked for."""

import csv
import hashlib
import io
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from pyarrow import parquet

from caret.foundation.postgres.tenancy import tenant
from tenants.errors import Forbidden, Invalid
from tenants.exports import stream
from tenants.exports.definitions import EXPORTS, USAGE_DAYS, USAGE_RECORDS, Export
from tenants.exports.formats import FORMATS, write_csv, write_ndjson
from tenants.exports.parquet import write_parquet
from tenants.exports.stream import Period, open_rows
from tenants.members.actor import Actor
from tenants.members.permissions import Role
from tenants.metrics.reports import Asked, Kind, report
from tenants.metrics.roll_up import roll_up
from tenants.models import AuditEntry
from tests.cast import ACME, GLOBEX, Company, make_company
from tests.integration.tenants.records import NOON, add_completion

DAY = Period(NOON.replace(hour=0, minute=0), NOON.replace(hour=0, minute=0) + timedelta(days=1))


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME)


def exported(
    company: Company, export: Export = USAGE_RECORDS, *, period: Period = DAY, **given: Any
) -> list[dict[str, Any]]:
    out = io.BytesIO()
    actor: Actor = given.get("actor", company.administrator.actor)
    with open_rows(actor=actor, export=export, period=period, now=NOON) as batches:
        write_ndjson(export, batches, out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_request_is_a_row_with_its_values(company: Company) -> None:
    request_id = add_completion(company, first_token_ms=43.5)

    (row,) = exported(company)

    assert (row["request_id"], row["user_id"]) == (str(request_id), company.developer.user_id)
    assert (row["occurred_at"], row["first_token_ms"]) == ("2026-11-20T12:30:00.000000Z", 43.5)
    assert (row["language"], row["generated_tokens"], row["variant"]) == ("python", 10, None)


def test_csv_and_ndjson_say_the_same(company: Company) -> None:
    for minutes in range(5):
        add_completion(company, at=NOON + timedelta(minutes=minutes))
    out = io.BytesIO()

    with open_rows(
        actor=company.administrator.actor, export=USAGE_RECORDS, period=DAY, now=NOON
    ) as batches:
        written = write_csv(USAGE_RECORDS, batches, out)

    rows = list(csv.DictReader(io.StringIO(out.getvalue().decode(), newline="")))
    as_text = [
        {name: "" if value is None else str(value) for name, value in row.items()}
        for row in exported(company)
    ]
    assert rows == as_text
    assert (written.rows, written.num_bytes) == (5, len(out.getvalue()))
    assert written.sha256 == hashlib.sha256(out.getvalue()).hexdigest()


def test_parquet_says_the_same_with_types(company: Company) -> None:
    for minutes in range(3):
        add_completion(company, at=NOON + timedelta(minutes=minutes), first_token_ms=1.5)
    out = io.BytesIO()

    with open_rows(
        actor=company.administrator.actor, export=USAGE_RECORDS, period=DAY, now=NOON
    ) as batches:
        written = write_parquet(USAGE_RECORDS, batches, out)

    table = parquet.read_table(io.BytesIO(out.getvalue()))
    rows = [
        row | {"occurred_at": row["occurred_at"].strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
        for row in table.to_pylist()
    ]
    assert rows == exported(company)
    assert table.schema.metadata == {b"export": b"usage_records", b"version": b"1"}
    assert (written.rows, written.num_bytes) == (3, len(out.getvalue()))
    assert written.sha256 == hashlib.sha256(out.getvalue()).hexdigest()


@pytest.mark.parametrize("export", EXPORTS.values(), ids=list(EXPORTS))
def test_parquet_without_rows_has_its_columns(company: Company, export: Export) -> None:
    out = io.BytesIO()

    with open_rows(
        actor=company.administrator.actor, export=export, period=DAY, now=NOON
    ) as batches:
        write_parquet(export, batches, out)

    table = parquet.read_table(io.BytesIO(out.getvalue()))
    assert table.column_names == [column.name for column in export.columns]
    assert table.num_rows == 0


def test_rows_of_several_batches_come_in_order(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "BATCH_ROWS", 2)
    for minutes in (4, 0, 3, 1, 2):
        add_completion(company, at=NOON + timedelta(minutes=minutes))

    times = [row["occurred_at"] for row in exported(company)]

    assert len(times) == 5
    assert times == sorted(times)


def test_days_agree_with_the_report_to_the_unit(company: Company) -> None:
    for number in range(7):
        add_completion(company, language="go" if number % 2 else "c", num_chars=number + 1)
    roll_up(tenant_id=company.tenant_id, arrived_until=timezone.now())

    rows = exported(company, USAGE_DAYS)

    asked = Asked(DAY.start.date(), DAY.end.date())
    counts = report(actor=company.administrator.actor, kind=Kind.USAGE, asked=asked).total.counts
    assert counts is not None
    assert {row["day"] for row in rows} == {"2026-11-20"}
    for name in ("requests", "suggested_chars", "generated_tokens"):
        assert sum(row[name] for row in rows) == getattr(counts, name)


def test_a_period_is_half_open(company: Company) -> None:
    add_completion(company, at=DAY.start)
    add_completion(company, at=DAY.end)

    assert len(exported(company)) == 1


@pytest.mark.parametrize("export", EXPORTS.values(), ids=list(EXPORTS))
def test_the_neighbours_are_not_in_it(company: Company, export: Export) -> None:
    neighbour = make_company("hooli", GLOBEX)
    add_completion(company)
    roll_up(tenant_id=company.tenant_id, arrived_until=timezone.now())

    assert exported(neighbour, export, actor=neighbour.administrator.actor) == []
    assert len(exported(company, export)) == 1


@pytest.mark.parametrize("role", [Role.DEVELOPER])
def test_who_may_not_see_all_usage_exports_none(company: Company, role: Role) -> None:
    with pytest.raises(Forbidden):
        exported(company, actor=company.people[role].actor)


def test_a_period_without_length_is_refused(company: Company) -> None:
    with pytest.raises(Invalid):
        exported(company, period=Period(NOON, NOON))


def test_an_export_is_in_the_audit_trail(company: Company) -> None:
    exported(company)

    with tenant(company.tenant_id):
        entry = AuditEntry.objects.get(action="export.read")
    assert entry.target == "export:usage_records"
    assert str(entry.actor_id) == company.administrator.user_id


def test_an_export_without_rows_has_its_header(company: Company) -> None:
    out = io.BytesIO()

    with open_rows(
        actor=company.administrator.actor, export=USAGE_RECORDS, period=DAY, now=NOON
    ) as batches:
        write_csv(USAGE_RECORDS, batches, out)

    assert out.getvalue().startswith(b"occurred_at,request_id,")
    assert out.getvalue().count(b"\r\n") == 1


@pytest.mark.parametrize("text", ["=1+1", "@SUM(A1)", "-2", "+3", 'a "quoted", one', "é\n"])
def test_no_spreadsheet_runs_a_cell(company: Company, text: str) -> None:
    add_completion(company, model=text)
    out = io.BytesIO()

    with open_rows(
        actor=company.administrator.actor, export=USAGE_RECORDS, period=DAY, now=NOON
    ) as batches:
        write_csv(USAGE_RECORDS, batches, out)

    (row,) = csv.DictReader(io.StringIO(out.getvalue().decode(), newline=""))
    assert row["model"].removeprefix("'") == text
    assert not row["model"].startswith(("=", "@", "-", "+"))


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_an_operator_writes_a_file(company: Company, tmp_path: Path, name: str) -> None:
    add_completion(company)
    out, told = tmp_path / "usage", io.StringIO()

    call_command(
        "export_usage",
        *(company.slug, "--from=2026-11-20", "--to=2026-11-21"),
        *(f"--format={name}", f"--out={out}"),
        stdout=told,
    )

    digest = hashlib.sha256(out.read_bytes()).hexdigest()
    assert told.getvalue().strip() == f"1 rows, SHA-256 {digest}"
    assert out.stat().st_mode & 0o077 == 0
    assert [path.name for path in tmp_path.iterdir()] == ["usage"]


def test_what_fails_leaves_no_half_a_file(company: Company, tmp_path: Path) -> None:
    with pytest.raises(CommandError):
        call_command(
            "export_usage",
            *(company.slug, "--from=2026-11-20", "--to=2026-11-20", f"--out={tmp_path / 'x'}"),
        )

    assert list(tmp_path.iterdir()) == []


def test_times_are_utc_whatever_the_server_says(company: Company) -> None:
    add_completion(company, at=datetime.fromisoformat("2026-11-20T13:30:00+01:00"))

    assert exported(company)[0]["occurred_at"] == "2026-11-20T12:30:00.000000Z"
