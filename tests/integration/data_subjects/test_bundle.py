"""An export of personal data contains all data about one user, and nothing about others."""

import json
import random
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from caret.foundation.crypto.signing import BadSignature, write_public_keys
from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound
from tenants.base.permissions import Role
from tenants.base.signing_keys import signing_keys
from tenants.compliance.data_subjects.data_inventory import OWN_SOURCES, SOURCES
from tenants.compliance.data_subjects.export_bundle import BundleLimits, BundleRequest, write_bundle
from tenants.compliance.data_subjects.verification import main as verify
from tenants.compliance.data_subjects.verification import verify_bundle
from tenants.models import IdempotencyRecord, Membership, User
from tenants.security.audit.queries import AuditFilter as AskedEntries
from tenants.security.audit.queries import list_entries
from tests.fakes.console_client import Client
from tests.fixtures.companies import make_key
from tests.integration.content_capture.consenting_tenant import YES
from tests.integration.data_subjects.traces import REPOSITORY, Traced

KEYS = signing_keys().public_keys()


def lines(bundle: BytesIO, name: str) -> list[dict[str, object]]:
    with ZipFile(bundle) as archive:
        return [json.loads(line) for line in archive.read(f"{name}.ndjson").splitlines()]


def names_of(bundle: BytesIO) -> set[str]:
    with ZipFile(bundle) as archive:
        return set(archive.namelist())


def test_a_bundle_has_a_row_of_every_kind(acme: Traced) -> None:
    bundle = acme.bundle(acme.ada.actor, acme.ada.user_id)

    empty = {each.name for each in (*SOURCES, *OWN_SOURCES) if not lines(bundle, each.name)}
    # The user is in no team or group, and has written no policy, ended no consent and exported
    # nothing.
    rare = {"team_memberships", "scim_groups", "policy_layers", "policy_versions", "exports"}
    assert empty == rare | {
        "erasures",
        "retention_rules",
        "telemetry_erasures",
        "sessions",
        "second_factors",
    }


def test_what_was_kept_sealed_is_handed_out_open(acme: Traced) -> None:
    bundle = acme.bundle(acme.ada.actor, acme.ada.user_id)

    (kept,) = lines(bundle, "captured_content")
    (indexed,) = lines(bundle, "retrieval_content")
    assert kept["prefix"] == f"def {acme.mark}(): ..."
    assert (indexed["repository"], indexed["path"]) == (REPOSITORY, f"{acme.mark}.py")


def test_nothing_about_anybody_else_is_in_it(acme: Traced, globex: Traced) -> None:
    alice = acme.company.administrator
    acme.willing.agree(alice, YES)
    acme.willing.keep(alice, "hers alone")
    make_key(acme.company, alice, name="alice's key")

    bundle = acme.bundle(acme.olga, acme.ada.user_id)

    with ZipFile(bundle) as archive:
        text = b"".join(archive.read(name) for name in archive.namelist()).decode()
    for foreign in ("hers alone", "alice's key", globex.mark, globex.company.tenant_id):
        assert foreign not in text


def test_no_secret_is_in_it(acme: Traced) -> None:
    bundle = acme.bundle(acme.ada.actor, acme.ada.user_id)

    with ZipFile(bundle) as archive:
        text = b"".join(archive.read(name) for name in archive.namelist()).decode()
    for secret in ("digest", "password", "wrapped", "sealed_body", "argon2", "session_key"):
        assert f'"{secret}' not in text


def test_from_where_somebody_signs_in_is_no_matter_of_one_of_his_tenants(acme: Traced) -> None:
    names = names_of(acme.bundle(acme.olga, acme.ada.user_id))

    assert not names & {f"{each.name}.ndjson" for each in OWN_SOURCES}


def test_a_bundle_is_signed_and_says_how_much_is_in_it(acme: Traced) -> None:
    bundle = acme.bundle(acme.olga, acme.ada.user_id)

    manifest = verify_bundle(bundle, KEYS)

    assert manifest["user_id"] == acme.ada.user_id
    assert {each["name"] for each in manifest["files"]} | {"manifest.json"} == names_of(bundle)
    assert next(e["rows"] for e in manifest["files"] if e["name"] == "usage_records.ndjson") == 1


def test_a_hundred_changed_bytes_are_found_or_change_nothing_that_is_read(acme: Traced) -> None:
    """Some bytes of a ZIP do not affect its content: dates, versions of the writer."""
    whole = acme.bundle(acme.olga, acme.ada.user_id).getvalue()
    choice = random.Random(3)
    with ZipFile(BytesIO(whole)) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}

    for place in choice.sample(range(len(whole)), 100):
        changed = bytearray(whole)
        changed[place] ^= 1 << choice.randrange(8)
        try:
            verify_bundle(BytesIO(bytes(changed)), KEYS)
        except BadSignature:
            continue
        with ZipFile(BytesIO(bytes(changed))) as archive:
            assert {name: archive.read(name) for name in archive.namelist()} == content


def rewritten(bundle: BytesIO, **changes: bytes | None) -> BytesIO:
    """Return the bundle with a file changed, added, or left out (None)."""
    out = BytesIO()
    with ZipFile(bundle) as old, ZipFile(out, "w") as new:
        files = {name: old.read(name) for name in old.namelist()} | changes
        for name, data in files.items():
            if data is not None:
                new.writestr(name, data)
    return out


def test_a_file_that_was_changed_added_or_left_out_is_found(acme: Traced) -> None:
    bundle = acme.bundle(acme.olga, acme.ada.user_id)
    changes: list[dict[str, bytes | None]] = [
        {"account.ndjson": b"{}\n"},
        {"account.ndjson": None},
        {"more.ndjson": b"{}\n"},
        {"manifest.json": b"{}"},
        {"manifest.json": b"[" * 100_000},
        {"manifest.json": None},
    ]

    for change in changes:
        with pytest.raises(BadSignature):
            verify_bundle(rewritten(bundle, **change), KEYS)


def test_who_asks_and_why_is_in_the_audit_trail(acme: Traced) -> None:
    acme.bundle(acme.olga, acme.ada.user_id, reason="letter of 3 May")

    asked = AskedEntries(action="data_subject.exported")
    (entry,) = list_entries(
        actor=acme.olga, asked=asked, limit=9, cursor=None, now=timezone.now()
    ).rows
    assert (str(entry.actor_id), entry.target) == (acme.olga.user_id, f"user:{acme.ada.user_id}")
    assert entry.reason == "letter of 3 May"


def test_somebody_elses_needs_a_reason_and_ones_own_does_not(acme: Traced) -> None:
    with pytest.raises(InvalidValue):
        acme.bundle(acme.olga, acme.ada.user_id, reason=" ")

    assert acme.bundle(acme.ada.actor, acme.ada.user_id, reason="").getvalue()


def test_who_is_no_administrator_gets_nobody_elses(acme: Traced) -> None:
    for role in (Role.AUDITOR, Role.BILLING, Role.DEVELOPER):
        with pytest.raises(Forbidden):
            acme.bundle(acme.company.people[role].actor, acme.company.administrator.user_id)


def test_the_neighbour_gets_nothing_of_ours(acme: Traced, globex: Traced) -> None:
    with pytest.raises(NotFound):
        acme.bundle(globex.olga, acme.ada.user_id)


def test_what_is_no_id_is_nobodys(acme: Traced) -> None:
    for user_id in ("", "ada", "\0", "0" * 40):
        with pytest.raises(NotFound):
            acme.bundle(acme.olga, user_id)


def test_who_has_left_may_still_be_asked_for(acme: Traced) -> None:
    with tenant_scope(acme.company.tenant_id):
        Membership.objects.filter(user_id=acme.ada.user_id).update(ended_at=timezone.now())

    assert lines(acme.bundle(acme.olga, acme.ada.user_id), "usage_records")


@pytest.mark.parametrize(
    "bounds",
    [BundleLimits(max_rows=5, max_bytes=1 << 30), BundleLimits(max_rows=1_000, max_bytes=500)],
    ids=["rows", "bytes"],
)
def test_more_than_can_be_sent_at_once_is_refused(acme: Traced, bounds: BundleLimits) -> None:
    with pytest.raises(Conflict, match="export_data_subject"):
        acme.bundle(acme.olga, acme.ada.user_id, bounds=bounds)


class Asking(BytesIO):
    """A file that calls a function once, just before captured content is opened."""

    def __init__(self, ask: Callable[[], object]) -> None:
        super().__init__()
        self._ask = ask
        self._has_asked = False

    def write(self, data: Any, /) -> int:
        if b"captured_content" in bytes(data) and not self._has_asked:
            self._has_asked = True
            self._ask()
        return super().write(data)


def test_while_one_is_made_a_tenants_next_is_refused_to_its_very_end(
    acme: Traced, globex: Traced
) -> None:
    def ask() -> None:
        assert globex.bundle(globex.olga, globex.ada.user_id).getvalue()
        with pytest.raises(Conflict, match="is running"):
            acme.bundle(acme.olga, acme.ada.user_id)

    asked = BundleRequest(UserId(acme.ada.user_id), "her request")
    out = Asking(ask)
    write_bundle(actor=acme.olga, asked=asked, out=out, now=timezone.now())

    assert verify_bundle(out, KEYS)["user_id"] == acme.ada.user_id
    assert acme.bundle(acme.olga, acme.ada.user_id).getvalue()


def test_over_rest_a_bundle_is_a_file_that_is_not_kept(acme: Traced) -> None:
    client = Client()
    client.force_login(User.objects.get(id=acme.ada.user_id))

    got = [
        client.post("/api/v1/data-subjects/me/bundle", headers={"Idempotency-Key": "twice"})
        for _ in range(2)
    ]

    for response in got:
        assert (response.status_code, response["Content-Type"]) == (200, "application/zip")
        assert response["Cache-Control"] == "no-store"
        assert verify_bundle(BytesIO(response.getvalue()), KEYS)["user_id"] == acme.ada.user_id
    with tenant_scope(acme.company.tenant_id):
        assert IdempotencyRecord.objects.count() == 1  # the record of the request before


def test_the_command_writes_what_the_other_command_verifies(acme: Traced, tmp_path: Path) -> None:
    out, keys = tmp_path / "ada.zip", tmp_path / "keys.json"
    keys.write_text(write_public_keys(KEYS))
    email = f"{acme.mark}@{acme.company.slug}.example"

    call_command("export_data_subject", acme.company.slug, email, reason="x", out=out)

    assert verify([str(out), "--public-key", str(keys)]) == 0
    assert out.stat().st_mode & 0o077 == 0
    out.write_bytes(out.read_bytes()[:-9])
    assert verify([str(out), "--public-key", str(keys)]) == 1
    assert verify([str(tmp_path / "none"), "--public-key", str(keys)]) == 2


def test_the_command_says_whom_it_does_not_know(acme: Traced, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No user"):
        call_command(
            "export_data_subject", acme.company.slug, "x@y.z", reason="x", out=tmp_path / "a"
        )
