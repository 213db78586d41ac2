"""Exports of the audit log, verified with only the public keys."""

import io
import json
import tracemalloc
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from caret.foundation.crypto.signing import write_public_keys
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Forbidden
from tenants.base.permissions import Role
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.models import AuditEntry
from tenants.security.audit.export import AuditExportPeriod, write_export
from tenants.security.audit.export_verification import VerificationFailed, verify_export
from tenants.security.audit.export_verification import main as verify_audit
from tenants.security.audit.operations import record_change
from tenants.security.audit.signed_heads import sign_head
from tenants.security.authorization.actor import Actor
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, make_company, make_key
from tests.stack.services import Services

ALL = AuditExportPeriod(None, None)


@pytest.fixture
def company() -> Company:
    """Make a company with a key. Its audit log then has seven entries.

    They are about the tenant, its five members, and the key.
    """
    company = make_company("initech", ACME_PEOPLE, records_additions=True)
    make_key(company, company.developer)
    return company


def add_entry(company: Company, *, at: datetime, action: str = "test.done") -> None:
    with tenant_scope(company.tenant_id):
        record_change(
            actor=company.platform,
            action=action,
            target="t",
            # JSON encoders differ in how they write these numbers and characters.
            change=(None, {"micros": 2**60, "rates": {"eur": 0.1}, "name": "Zoë\u2028\U0001f600"}),
            now=at,
        )


def export_log(actor: Actor, period: AuditExportPeriod = ALL) -> bytes:
    out = io.BytesIO()
    write_export(actor=actor, period=period, out=out, keys=load_signing_keys(), now=timezone.now())
    return out.getvalue()


def verify_and_read_header(text: bytes) -> dict[str, Any]:
    return verify_export(io.BytesIO(text), load_signing_keys().public_keys()).header


def select_records(text: bytes, kind: str) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in text.splitlines()]
    return [record for record in records if record["kind"] == kind]


def test_an_export_verifies_and_contains_its_own_entry(company: Company) -> None:
    add_entry(company, at=timezone.now())

    text = export_log(company.people[Role.AUDITOR].actor)

    header = verify_and_read_header(text)
    # Seven entries of the company, one of this test and one of the export.
    assert (header["tenant"], header["rows"]) == (company.slug, 9)
    actions = [entry["action"] for entry in select_records(text, "entry")]
    assert (actions[0], actions[-1]) == ("tenant.created", "audit.exported")


def test_signed_heads_follow_their_entries(company: Company) -> None:
    now = timezone.now()
    for hours in (0, 1):
        sign_head(
            tenant_id=company.tenant_id,
            keys=load_signing_keys(),
            now=now + timedelta(hours=hours),
        )
        add_entry(company, at=now)

    text = export_log(company.platform)

    heads = select_records(text, "head")
    assert [head["sequence"] for head in heads] == [7, 8]
    assert verify_export(io.BytesIO(text), load_signing_keys().public_keys()).num_heads == 2


def test_a_period_includes_its_start_and_excludes_its_end(company: Company) -> None:
    day = datetime(2001, 5, 1, tzinfo=UTC)
    for hours in (-1, 0, 23, 24):
        add_entry(company, at=day + timedelta(hours=hours), action=f"test.{hours}")

    text = export_log(company.platform, AuditExportPeriod(day, day + timedelta(days=1)))

    verify_and_read_header(text)
    assert [entry["action"] for entry in select_records(text, "entry")] == ["test.0", "test.23"]


def test_entries_from_a_clock_that_jumped_are_included(company: Company) -> None:
    day = datetime(2001, 5, 1, tzinfo=UTC)
    for hours in (1, -500, 2):
        add_entry(company, at=day + timedelta(hours=hours), action=f"test.{hours}")

    text = export_log(company.platform, AuditExportPeriod(day, None))

    verify_and_read_header(text)
    assert "test.-500" in [entry["action"] for entry in select_records(text, "entry")]


def test_an_export_of_a_period_without_entries_verifies(company: Company) -> None:
    day = datetime(2001, 5, 1, tzinfo=UTC)

    text = export_log(company.platform, AuditExportPeriod(day, day + timedelta(days=1)))

    assert verify_and_read_header(text)["rows"] == 0


def test_an_export_contains_nothing_of_another_tenant(company: Company, cast: Cast) -> None:
    text = export_log(company.platform).decode()

    assert cast.acme.tenant_id not in text
    assert cast.acme.slug not in text


@pytest.mark.parametrize("role", [Role.DEVELOPER, Role.BILLING])
def test_exporting_requires_permission_to_read_the_audit_log(company: Company, role: Role) -> None:
    out = io.BytesIO()

    with pytest.raises(Forbidden):
        write_export(
            actor=company.people[role].actor,
            period=ALL,
            out=out,
            keys=load_signing_keys(),
            now=timezone.now(),
        )

    assert out.getvalue() == b""


def test_a_changed_entry_is_named_by_verification(company: Company, services: Services) -> None:
    with psycopg.connect(services.owner_database_url, autocommit=True) as owner:
        owner.execute("ALTER TABLE tenants_auditentry NO FORCE ROW LEVEL SECURITY")
        owner.execute(
            "UPDATE tenants_auditentry SET reason = 'x' WHERE sequence = 3 AND tenant_id = %s",
            [company.tenant_id],
        )
        owner.execute("ALTER TABLE tenants_auditentry FORCE ROW LEVEL SECURITY")

    with pytest.raises(VerificationFailed, match="entry 3: its content does not match its hash"):
        verify_and_read_header(export_log(company.platform))


@pytest.mark.deep  # takes long
def test_memory_does_not_grow_with_the_export(company: Company) -> None:
    def measure_peak_bytes(num_entries: int) -> int:
        _add_entries_up_to(company, num_entries)
        tracemalloc.start()
        with Path("/dev/null").open("wb") as out:
            write_export(
                actor=company.platform,
                period=ALL,
                out=out,
                keys=load_signing_keys(),
                now=timezone.now(),
            )
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak_bytes

    peak_of_short_log = measure_peak_bytes(400)
    peak_of_long_log = measure_peak_bytes(2_000)

    assert peak_of_long_log < peak_of_short_log * 1.5


def _add_entries_up_to(company: Company, count: int) -> None:
    with tenant_scope(company.tenant_id):
        while AuditEntry.objects.count() < count:
            for _ in range(100):
                record_change(
                    actor=company.platform,
                    action="test.done",
                    target="t",
                    change=(None, {"text": "x" * 1_000}),
                    now=timezone.now(),
                )
    connection.close()


def test_the_verifier_accepts_the_commands_export(
    company: Company, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, keys = tmp_path / "trail.ndjson", tmp_path / "caret-signing-keys.json"
    keys.write_text(write_public_keys(load_signing_keys().public_keys()))

    call_command("export_audit_log", company.slug, out=file, reason="yearly", stdout=StringIO())

    assert verify_audit([str(file), "--public-key", str(keys)]) == 0
    # Seven entries of the company, and one of the export.
    assert "8 entries, 1 to 8" in capsys.readouterr().out
    assert file.stat().st_mode & 0o077 == 0, "other users have access to the file"
    last = select_records(file.read_bytes(), "entry")[-1]
    assert (last["action"], last["reason"]) == ("audit.exported", "yearly")
    assert sorted(path.name for path in tmp_path.iterdir()) == [keys.name, file.name]


@pytest.mark.parametrize(
    "arguments",
    [
        ("nobody", "--out", "x"),
        ("{slug}", "--out", "/nonexistent/x"),
        ("{slug}", "--out", "x", "--from", "yesterday"),
        # A time before the year 1 in UTC, and a year after 2199, the last one that is accepted.
        ("{slug}", "--out", "x", "--from", "0001-01-01T00:00:00+14:00"),
        ("{slug}", "--out", "x", "--to", "9999-12-31"),
    ],
)
def test_the_command_rejects_invalid_arguments(
    company: Company, arguments: tuple[str, ...]
) -> None:
    with pytest.raises(CommandError):
        call_command(
            "export_audit_log", *[argument.format(slug=company.slug) for argument in arguments]
        )
