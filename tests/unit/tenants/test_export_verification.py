"""Changes of an exported file or of its proof are detected. The error says what was changed."""

import hashlib
import io
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from caret.foundation.crypto.canonical_json import canonicalize
from caret.foundation.crypto.signing import SigningKeys, write_public_keys
from tenants.base.signatures.verifier_cli import BROKEN, OK, UNREADABLE
from tenants.compliance.exports.evidence_pack_verification import KEYS_FILE
from tenants.compliance.exports.verification import (
    FORMAT,
    KIND,
    PURPOSE,
    BrokenExport,
    verify_export,
)
from tenants.compliance.exports.verify_cli import main

ROOT = Path(__file__).resolve().parents[3]
KEYS = SigningKeys(bytes(range(32)), version=1)
OTHER_KEYS = SigningKeys(bytes(32), version=1)
DATA = b"day,requests\r\n" + b"".join(b"2026-11-%02d,%d\r\n" % (day, day) for day in range(1, 30))


def proof_of(data: bytes, *, keys: SigningKeys = KEYS, **fields: Any) -> bytes:
    document = {
        "kind": KIND,
        "format": FORMAT,
        "tenant": "acme",
        "tenant_id": "0b3c8f9e-5d1e-4b7a-9c1d-2f3a4b5c6d7e",
        "definition": "usage_days",
        "version": 1,
        "since": "2026-11-01T00:00:00.000000Z",
        "until": "2026-12-01T00:00:00.000000Z",
        "complete_until": None,
        "generated_at": "2026-12-01T00:00:00.000000Z",
        "rows": 29,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        **fields,
    }
    return canonicalize(keys.sign_document(document, purpose=PURPOSE)) + b"\n"


PROOF = proof_of(DATA)


def verification_error(data: bytes, proof: bytes) -> str:
    """Check that the verification of the data fails, and return its error message."""
    with pytest.raises(BrokenExport) as exc_info:
        verify_export(io.BytesIO(data), proof, KEYS.public_keys())
    return str(exc_info.value)


def change_byte(text: bytes, random_: random.Random) -> bytes:
    position, mask = random_.randrange(len(text)), random_.randrange(1, 256)
    return text[:position] + bytes([text[position] ^ mask]) + text[position + 1 :]


def test_an_unchanged_export_is_valid() -> None:
    document = verify_export(io.BytesIO(DATA), PROOF, KEYS.public_keys())

    assert (document["definition"], document["rows"]) == ("usage_days", 29)


def test_a_hundred_random_byte_changes_are_detected_in_data_and_proof() -> None:
    random_ = random.Random(8)
    for number in range(100):
        if number % 2:
            assert verification_error(change_byte(DATA, random_), PROOF).startswith("the data")
        else:
            assert verification_error(DATA, change_byte(PROOF, random_)).startswith("the proof")


@pytest.mark.parametrize("data", [DATA[:-1], DATA + b"\n", b"", DATA + DATA])
def test_added_or_removed_data_is_detected(data: bytes) -> None:
    assert "bytes" in verification_error(data, PROOF)


@pytest.mark.parametrize(
    "proof",
    [b"", b"{}", b"[]\n", b"null\n", PROOF + b" ", b" " + PROOF, PROOF * 2, b"[" * 50_000],
    ids=[
        "empty",
        "an object",
        "a list",
        "null",
        "a space at the end",
        "a space at the beginning",
        "two proofs",
        "open brackets",
    ],
)
def test_a_malformed_proof_is_reported(proof: bytes) -> None:
    assert verification_error(DATA, proof).startswith("the proof")


def test_a_proof_with_another_key_is_invalid() -> None:
    assert "not in your list" in verification_error(DATA, proof_of(DATA, keys=OTHER_KEYS))


def test_a_signature_for_another_purpose_is_no_proof() -> None:
    document = {"kind": KIND, "format": FORMAT, "bytes": 0, "sha256": ""}
    proof = canonicalize(KEYS.sign_document(document, purpose="deletion-certificate/1")) + b"\n"

    assert "is not valid" in verification_error(b"", proof)


def test_a_newer_format_is_rejected() -> None:
    assert "format" in verification_error(DATA, proof_of(DATA, format=FORMAT + 1))


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """Return a file with its proof and a file of keys beside it."""
    file = tmp_path / "usage.csv"
    file.write_bytes(DATA)
    (tmp_path / "usage.csv.proof.json").write_bytes(PROOF)
    (tmp_path / KEYS_FILE).write_text(write_public_keys(KEYS.public_keys()))
    return file


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """Return a file of keys from another source."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    file = folder / "keys.json"
    file.write_text(write_public_keys(KEYS.public_keys()))
    return file


def test_the_command_prints_what_it_verified(
    export: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(export), "--public-key", str(keys)]) == OK
    assert "usage_days version 1, 29 rows, of the tenant acme" in capsys.readouterr().out


def test_the_command_prints_what_is_wrong(
    export: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export.write_bytes(DATA.replace(b",7", b",8"))

    assert main([str(export), "--public-key", str(keys)]) == BROKEN
    assert "the data: it was changed" in capsys.readouterr().out


def test_keys_beside_an_export_are_ignored(export: Path) -> None:
    with pytest.raises(SystemExit) as exit_:
        main([str(export)])

    assert exit_.value.code == UNREADABLE


@pytest.mark.parametrize("missing", ["usage.csv", "usage.csv.proof.json", "elsewhere/keys.json"])
def test_a_missing_file_is_named(
    export: Path, keys: Path, missing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (export.parent / missing).unlink()

    assert main([str(export), "--public-key", str(keys)]) == UNREADABLE
    assert missing in capsys.readouterr().err


def test_the_command_needs_no_settings(export: Path, keys: Path) -> None:
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CARET_", "DJANGO_", "DATABASE_", "REDIS_"))
    }
    command = ["verify_export", str(export), "--public-key", str(keys)]

    result = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *command],
        env={**environment, "CARET_HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (result.returncode, result.stderr) == (OK, "")
    assert result.stdout.startswith("OK: usage_days")
