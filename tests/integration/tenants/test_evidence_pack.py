"""The evidence pack: a ZIP of all exports, which can be verified as a whole and file by file."""

import csv
import io
import random
import shutil
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from caret.foundation.crypto.signing import SigningKeys, write_public_keys
from tenants.base.errors import Forbidden, InvalidValue
from tenants.base.permissions import Role
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.base.signatures.verifier_cli import BROKEN, OK
from tenants.compliance.exports import paged_source
from tenants.compliance.exports.definitions.definitions import EXPORTS, PACK
from tenants.compliance.exports.evidence_pack_verification import MANIFEST, TRAIL, verify_pack
from tenants.compliance.exports.jobs import run as jobs_run
from tenants.compliance.exports.rows import Period
from tenants.compliance.exports.verification import PROOF_SUFFIX, BrokenExport, verify_export
from tenants.compliance.exports.verify_cli import main
from tenants.privacy.retention.verification import main as verify_certificate
from tenants.security.audit.export_verification import main as verify_audit
from tests.fakes.exports import (
    OCTOBER,
    build_exports,
    end_all_exports,
    file_of,
    start_export,
    view_export,
)
from tests.fakes.retention import make_certificate
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, make_company
from tests.integration.tenants.records import NOON, add_completion
from tests.stack.services import Services

ALWAYS = Period(datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
KEYS = load_signing_keys().public_keys()


@pytest.fixture(scope="module")
def company(services: Services, django_db_blocker: Any) -> Company:
    with django_db_blocker.unblock():
        return make_company("initech", ACME_PEOPLE)


@pytest.fixture(scope="module")
def pack(
    company: Company, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return the downloaded pack, with its proof beside it."""
    folder = tmp_path_factory.mktemp("pack")
    with django_db_blocker.unblock():
        add_completion(company, at=NOON)
        make_certificate(company)
        export_id = start_export(
            company, PACK, "zip", period=ALWAYS, actor=company.people[Role.AUDITOR].actor
        )
        build_exports(company)
        export = view_export(company, export_id)
        assert export.state == "finished", export.error
        file = folder / export.name
        file.write_bytes(file_of(company, export_id))
    file.with_name(file.name + PROOF_SUFFIX).write_text(export.proof)
    (folder / "keys").mkdir()
    (folder / "keys" / "keys.json").write_text(write_public_keys(KEYS))
    return file


def keys_of(pack: Path) -> str:
    """Return the path of the public keys that the fixture `pack` stored."""
    return str(pack.parent / "keys" / "keys.json")


def test_the_pack_has_every_export_proof_certificate_and_the_audit_log(pack: Path) -> None:
    with zipfile.ZipFile(pack) as archive:
        names = set(archive.namelist())
        assert archive.testzip() is None

    assert {f"{name}.csv" for name in EXPORTS} <= names
    assert {f"{name}.csv{PROOF_SUFFIX}" for name in EXPORTS} <= names
    assert {TRAIL, MANIFEST, "README.txt", "caret-signing-keys.json"} <= names
    assert any(name.startswith("certificates/") for name in names)


def test_rows_that_are_read_in_several_parts_are_in_the_pack_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paged_source, "MAX_PAGE", 1)
    monkeypatch.setattr(paged_source, "BATCH_ROWS", 1)
    # An export that repeats rows forever would fail at this limit.
    monkeypatch.setattr(jobs_run, "MAX_ROWS", 100)
    company = make_company("hooli", ACME_PEOPLE)
    auditor = company.people[Role.AUDITOR].actor
    export_id = start_export(company, PACK, "zip", period=ALWAYS, actor=auditor)
    build_exports(company)

    with zipfile.ZipFile(io.BytesIO(file_of(company, export_id))) as archive:
        rows = list(csv.DictReader(io.StringIO(archive.read("members.csv").decode())))

    assert sorted(row["email"] for row in rows) == sorted(
        person.email for person in company.people.values()
    )


def test_the_command_verifies_the_whole_pack(
    pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(pack), "--public-key", keys_of(pack)]) == OK

    output = capsys.readouterr().out
    assert "evidence_pack version 1" in output
    assert "files of the evidence pack" in output


def test_without_its_proof_the_packs_files_are_verified(
    pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pack_alone = Path(shutil.copy(pack, tmp_path))

    assert main([str(pack_alone), "--public-key", keys_of(pack)]) == OK
    assert "no proof beside the ZIP" in capsys.readouterr().out


def test_the_packs_files_verify_one_by_one(pack: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(pack) as archive:
        archive.extractall(tmp_path)
    keys = ["--public-key", keys_of(pack)]

    for name in EXPORTS:
        assert main([str(tmp_path / f"{name}.csv"), *keys]) == OK
    assert verify_audit([str(tmp_path / TRAIL), *keys]) == OK
    for certificate in (tmp_path / "certificates").iterdir():
        assert verify_certificate([str(certificate), *keys]) == OK


def test_a_changed_byte_of_pack_or_proof_is_detected(pack: Path) -> None:
    proof = pack.with_name(pack.name + PROOF_SUFFIX).read_bytes()
    chance = random.Random(8)  # a fixed seed

    for number in range(100):
        changed_files = [bytearray(pack.read_bytes()), bytearray(proof)]
        part = changed_files[1 if number % 4 == 0 else 0]  # every fourth change is in the proof
        part[chance.randrange(len(part))] ^= chance.randrange(1, 256)
        with pytest.raises(BrokenExport):
            verify_export(io.BytesIO(bytes(changed_files[0])), bytes(changed_files[1]), KEYS)


def rewrite_pack(pack: Path, changed_files: dict[str, bytes | None]) -> io.BytesIO:
    """Return the ZIP with these files replaced or added; None leaves a file out."""
    out = io.BytesIO()
    with zipfile.ZipFile(pack) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = changed_files.get(name, old.read(name))
            if data is not None:
                new.writestr(name, data)
        for name in changed_files.keys() - set(old.namelist()):
            new.writestr(name, changed_files[name] or b"")
    return out


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("members.csv", b"user_id\r\n"),
        ("members.csv", None),
        ("members.csv.proof.json", b"{}"),
        (TRAIL, b""),
        (MANIFEST, b"{}"),
        ("README.txt", b"Trust me."),
        ("caret-signing-keys.json", b"{}"),
        ("more.csv", b"planted"),
    ],
)
def test_a_changed_added_or_missing_file_is_detected(
    pack: Path, name: str, data: bytes | None
) -> None:
    with pytest.raises(BrokenExport):
        verify_pack(rewrite_pack(pack, {name: data}), KEYS)
    verify_pack(rewrite_pack(pack, {}), KEYS)


def test_a_pack_signed_with_other_keys_is_refused(pack: Path) -> None:
    other_keys = SigningKeys(bytes(32), version=1).public_keys()

    with pack.open("rb") as file, pytest.raises(BrokenExport, match="not in your list"):
        verify_pack(file, other_keys)


def test_the_command_names_the_changed_file(
    pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pack_alone = tmp_path / "pack.zip"
    pack_alone.write_bytes(rewrite_pack(pack, {"keys.csv": b"lookup_id\r\n"}).getvalue())

    assert main([str(pack_alone), "--public-key", keys_of(pack)]) == BROKEN
    assert "keys.csv was changed after it was signed" in capsys.readouterr().out


def test_a_pack_requires_all_permissions_and_the_zip_format(company: Company) -> None:
    with pytest.raises(Forbidden):
        start_export(company, PACK, "zip", actor=company.people[Role.BILLING].actor)
    with pytest.raises(InvalidValue):
        start_export(company, PACK, "csv")
    with pytest.raises(InvalidValue):
        start_export(company, "members", "zip")


def test_a_pack_contains_nothing_of_another_tenant(pack: Path, cast: Cast) -> None:
    with zipfile.ZipFile(pack) as archive:
        for name in archive.namelist():
            assert cast.globex.tenant_id.encode() not in archive.read(name)


def test_an_interrupted_pack_is_continued(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_all_exports(company)
    monkeypatch.setattr(jobs_run, "_SLICE_S", 0.0)  # a worker's turn ends after one batch

    export_id = start_export(company, PACK, "zip", period=OCTOBER)
    build_exports(company)

    manifest = verify_pack(io.BytesIO(file_of(company, export_id)), KEYS)
    # Each export and its proof, the audit log, README.txt and the public keys.
    assert len(manifest["files"]) >= 2 * len(EXPORTS) + 3
