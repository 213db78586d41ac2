"""An export of personal data contains all data about one user, and nothing about others.

The export is a ZIP file, called a bundle here, with one NDJSON file for each source of data.
"""

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
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.compliance.data_subjects.data_inventory import OWN_SOURCES, SOURCES
from tenants.compliance.data_subjects.export_bundle import BundleLimits, BundleRequest, write_bundle
from tenants.compliance.data_subjects.verification import main as verify
from tenants.compliance.data_subjects.verification import verify_bundle
from tenants.models import IdempotencyRecord, Membership, RetrievalChunk, User
from tenants.security.audit.queries import AuditFilter, list_entries
from tests.fakes.console_client import Client
from tests.fixtures.companies import make_key
from tests.integration.content_capture.consenting_tenant import CAPTURE_CONSENT
from tests.integration.data_subjects.traces import REPOSITORY, TracedTenant, add_scim_user

PUBLIC_KEYS = load_signing_keys().public_keys()  # with which the signatures are verified


def read_rows(bundle: BytesIO, name: str) -> list[dict[str, object]]:
    with ZipFile(bundle) as archive:
        return [json.loads(line) for line in archive.read(f"{name}.ndjson").splitlines()]


def list_file_names(bundle: BytesIO) -> set[str]:
    with ZipFile(bundle) as archive:
        return set(archive.namelist())


def test_an_export_has_rows_of_every_source_with_data(acme: TracedTenant) -> None:
    bundle = acme.export(acme.ada.actor, acme.ada.user_id)

    empty = {
        source.name for source in (*SOURCES, *OWN_SOURCES) if not read_rows(bundle, source.name)
    }
    assert empty == {  # the fixture has no data in these sources
        "team_memberships",
        "scim_groups",
        "policy_overrides",
        "policy_versions",
        "exports",
        "erasures",
        "retention_rules",
        "content_erasures",
        "sessions",
        "second_factors",
    }


def test_an_export_contains_decrypted_content(acme: TracedTenant) -> None:
    bundle = acme.export(acme.ada.actor, acme.ada.user_id)

    (captured,) = read_rows(bundle, "captured_content")
    (indexed,) = read_rows(bundle, "retrieval_content")
    assert captured["prefix"] == f"def {acme.mark}(): ..."
    assert (indexed["repository"], indexed["path"]) == (REPOSITORY, f"{acme.mark}.py")


def test_an_export_says_how_many_texts_could_not_be_decrypted(acme: TracedTenant) -> None:
    readme = "Texts that Caret could not decrypt and left out: {}."
    with ZipFile(acme.export(acme.ada.actor, acme.ada.user_id)) as archive:
        assert readme.format(0) in archive.read("README.txt").decode()
    with tenant_scope(acme.company.tenant_id):
        chunks = RetrievalChunk.objects.filter(
            tenant_id=acme.company.tenant_id, holder=acme.ada.user_id
        )
        assert chunks.update(sealed_text=bytes(64)) == 1

    bundle = acme.export(acme.ada.actor, acme.ada.user_id)

    assert read_rows(bundle, "retrieval_content") == []
    with ZipFile(bundle) as archive:
        assert readme.format(1) in archive.read("README.txt").decode()


def test_an_export_contains_scim_users_without_an_account(acme: TracedTenant) -> None:
    """An identity provider can add a member whose domain the tenant has not verified."""
    add_scim_user(acme, has_account=False)

    bundle = acme.export(acme.ada.actor, acme.ada.user_id)

    assert len(read_rows(bundle, "scim_users")) == 2


def test_an_export_contains_nothing_about_other_users(
    acme: TracedTenant, globex: TracedTenant
) -> None:
    alice = acme.company.administrator
    acme.tenant.give_consent(alice, CAPTURE_CONSENT)
    acme.tenant.capture(alice, "only about alice")
    make_key(acme.company, alice, name="alice's key")

    bundle = acme.export(acme.olga, acme.ada.user_id)

    with ZipFile(bundle) as archive:
        text = b"".join(archive.read(name) for name in archive.namelist()).decode()
    for foreign_text in ("only about alice", "alice's key", globex.mark, globex.company.tenant_id):
        assert foreign_text not in text


def test_an_export_has_no_field_for_a_secret(acme: TracedTenant) -> None:
    bundle = acme.export(acme.ada.actor, acme.ada.user_id)

    with ZipFile(bundle) as archive:
        text = b"".join(archive.read(name) for name in archive.namelist()).decode()
    for name in ("digest", "password", "wrapped", "sealed_body", "argon2", "session_key"):
        assert f'"{name}' not in text


def test_an_administrators_export_omits_the_users_own_account_data(acme: TracedTenant) -> None:
    names = list_file_names(acme.export(acme.olga, acme.ada.user_id))

    assert not names & {f"{source.name}.ndjson" for source in OWN_SOURCES}


def test_an_export_is_signed_and_counts_its_rows(acme: TracedTenant) -> None:
    bundle = acme.export(acme.olga, acme.ada.user_id)

    manifest = verify_bundle(bundle, PUBLIC_KEYS)

    assert manifest["user_id"] == acme.ada.user_id
    assert {file["name"] for file in manifest["files"]} | {"manifest.json"} == list_file_names(
        bundle
    )
    assert (
        next(file["rows"] for file in manifest["files"] if file["name"] == "usage_records.ndjson")
        == 1
    )


def test_a_changed_byte_is_detected_or_does_not_affect_the_content(acme: TracedTenant) -> None:
    """Some bytes of a ZIP file, such as dates, do not affect its content."""
    bundle = acme.export(acme.olga, acme.ada.user_id).getvalue()
    rng = random.Random(3)
    with ZipFile(BytesIO(bundle)) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}

    for offset in rng.sample(range(len(bundle)), 100):
        changed_bundle = bytearray(bundle)
        changed_bundle[offset] ^= 1 << rng.randrange(8)
        try:
            verify_bundle(BytesIO(bytes(changed_bundle)), PUBLIC_KEYS)
        except BadSignature:
            continue
        with ZipFile(BytesIO(bytes(changed_bundle))) as archive:
            assert {name: archive.read(name) for name in archive.namelist()} == content


def rewrite_bundle(bundle: BytesIO, **changes: bytes | None) -> BytesIO:
    """Return the bundle with files changed or added. None leaves a file out."""
    out = BytesIO()
    with ZipFile(bundle) as original, ZipFile(out, "w") as target:
        files = {name: original.read(name) for name in original.namelist()} | changes
        for name, data in files.items():
            if data is not None:
                target.writestr(name, data)
    return out


def test_a_changed_added_or_missing_file_is_detected(acme: TracedTenant) -> None:
    bundle = acme.export(acme.olga, acme.ada.user_id)
    changes: list[dict[str, bytes | None]] = [  # None: the file is left out
        {"account.ndjson": b"{}\n"},
        {"account.ndjson": None},
        {"more.ndjson": b"{}\n"},
        {"manifest.json": b"{}"},
        {"manifest.json": b"[" * 100_000},  # nested too deeply for the JSON parser
        {"manifest.json": None},
    ]

    for change in changes:
        with pytest.raises(BadSignature):
            verify_bundle(rewrite_bundle(bundle, **change), PUBLIC_KEYS)


def test_an_export_is_audited_with_actor_and_reason(acme: TracedTenant) -> None:
    acme.export(acme.olga, acme.ada.user_id, reason="letter of 3 May")

    audit_filter = AuditFilter(action="data_subject.exported")
    (entry,) = list_entries(
        actor=acme.olga, audit_filter=audit_filter, limit=9, cursor=None, now=timezone.now()
    ).rows
    assert (str(entry.actor_id), entry.target) == (acme.olga.user_id, f"user:{acme.ada.user_id}")
    assert entry.reason == "letter of 3 May"


def test_only_an_export_of_another_user_needs_a_reason(acme: TracedTenant) -> None:
    with pytest.raises(InvalidValue):
        acme.export(acme.olga, acme.ada.user_id, reason=" ")

    assert acme.export(acme.ada.actor, acme.ada.user_id, reason="").getvalue()


def test_only_administrators_export_the_data_of_other_users(acme: TracedTenant) -> None:
    for role in (Role.AUDITOR, Role.BILLING, Role.DEVELOPER):
        with pytest.raises(Forbidden):
            acme.export(acme.company.people[role].actor, acme.company.administrator.user_id)


def test_another_tenants_user_is_not_found(acme: TracedTenant, globex: TracedTenant) -> None:
    with pytest.raises(NotFound):
        acme.export(globex.olga, acme.ada.user_id)


def test_an_invalid_user_id_is_not_found(acme: TracedTenant) -> None:
    for user_id in ("", "ada", "\0", "0" * 40):
        with pytest.raises(NotFound):
            acme.export(acme.olga, user_id)


def test_the_data_of_a_former_member_can_be_exported(acme: TracedTenant) -> None:
    with tenant_scope(acme.company.tenant_id):
        Membership.objects.filter(user_id=acme.ada.user_id).update(ended_at=timezone.now())

    assert read_rows(acme.export(acme.olga, acme.ada.user_id), "usage_records")


@pytest.mark.parametrize(
    "limits",
    [BundleLimits(max_rows=5, max_bytes=1 << 30), BundleLimits(max_rows=1_000, max_bytes=500)],
    ids=["rows", "bytes"],
)
def test_an_export_over_the_size_limit_is_rejected(
    acme: TracedTenant, limits: BundleLimits
) -> None:
    # The message names the command that has no size limit.
    with pytest.raises(Conflict, match="export_data_subject"):
        acme.export(acme.olga, acme.ada.user_id, limits=limits)


class FileWithCallback(BytesIO):
    """A file that calls a function once, at the first write that names captured content.

    The export is still running then.
    """

    def __init__(self, callback: Callable[[], object]) -> None:
        super().__init__()
        self._callback = callback
        self.has_called = False

    def write(self, data: Any, /) -> int:
        if b"captured_content" in bytes(data) and not self.has_called:
            self.has_called = True
            self._callback()
        return super().write(data)


def test_a_tenant_has_one_running_export_at_a_time(
    acme: TracedTenant, globex: TracedTenant
) -> None:
    def request_more_exports() -> None:
        assert globex.export(globex.olga, globex.ada.user_id).getvalue()
        with pytest.raises(Conflict, match="is running"):
            acme.export(acme.olga, acme.ada.user_id)

    bundle_request = BundleRequest(UserId(acme.ada.user_id), "a request by e-mail")
    out = FileWithCallback(request_more_exports)
    write_bundle(actor=acme.olga, bundle_request=bundle_request, out=out, now=timezone.now())

    assert out.has_called
    assert verify_bundle(out, PUBLIC_KEYS)["user_id"] == acme.ada.user_id
    assert acme.export(acme.olga, acme.ada.user_id).getvalue()


def test_an_export_over_rest_is_not_stored_for_idempotency(acme: TracedTenant) -> None:
    client = Client()
    client.force_login(User.objects.get(id=acme.ada.user_id))

    responses = [
        client.post("/api/v1/data-subjects/me/bundle", headers={"Idempotency-Key": "twice"})
        for _ in range(2)
    ]

    for response in responses:
        assert (response.status_code, response["Content-Type"]) == (200, "application/zip")
        assert response["Cache-Control"] == "no-store"
        assert (
            verify_bundle(BytesIO(response.getvalue()), PUBLIC_KEYS)["user_id"] == acme.ada.user_id
        )
    with tenant_scope(acme.company.tenant_id):
        assert IdempotencyRecord.objects.count() == 1  # the fixture's; these requests added none


def test_the_verifier_accepts_the_commands_export_and_detects_damage(
    acme: TracedTenant, tmp_path: Path
) -> None:
    out, keys = tmp_path / "ada.zip", tmp_path / "keys.json"
    keys.write_text(write_public_keys(PUBLIC_KEYS))
    email = f"{acme.mark}@{acme.company.slug}.example"

    call_command("export_data_subject", acme.company.slug, email, reason="x", out=out)

    assert verify([str(out), "--public-key", str(keys)]) == 0
    assert out.stat().st_mode & 0o077 == 0
    out.write_bytes(out.read_bytes()[:-9])
    assert verify([str(out), "--public-key", str(keys)]) == 1
    assert verify([str(tmp_path / "none"), "--public-key", str(keys)]) == 2  # no such file


def test_the_command_rejects_an_unknown_user(acme: TracedTenant, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No user"):
        call_command(
            "export_data_subject", acme.company.slug, "x@y.z", reason="x", out=tmp_path / "a"
        )
