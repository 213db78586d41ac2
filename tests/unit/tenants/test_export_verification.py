"""Changes of an exported file or of its proof are found and named."""

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
from tenants.base.verifier_cli import BROKEN, OK, UNUSABLE
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


def proof_of(data: bytes, *, keys: SigningKeys = KEYS, **said: Any) -> bytes:
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
        **said,
    }
    return canonicalize(keys.sign_document(document, purpose=PURPOSE)) + b"\n"


PROOF = proof_of(DATA)


def broken(data: bytes, proof: bytes) -> str:
    with pytest.raises(BrokenExport) as caught:
        verify_export(io.BytesIO(data), proof, KEYS.public_keys())
    return str(caught.value)


def changed(text: bytes, chance: random.Random) -> bytes:
    place, mask = chance.randrange(len(text)), chance.randrange(1, 256)
    return text[:place] + bytes([text[place] ^ mask]) + text[place + 1 :]


def test_a_sound_export_is_sound() -> None:
    document = verify_export(io.BytesIO(DATA), PROOF, KEYS.public_keys())

    assert (document["definition"], document["rows"]) == ("usage_days", 29)


def test_a_hundred_random_changes_of_one_byte_are_found_and_said_where() -> None:
    chance = random.Random(8)
    for number in range(100):
        if number % 2:
            assert broken(changed(DATA, chance), PROOF).startswith("the data")
        else:
            assert broken(DATA, changed(PROOF, chance)).startswith("the proof")


@pytest.mark.parametrize("data", [DATA[:-1], DATA + b"\n", b"", DATA + DATA])
def test_what_was_cut_or_added_is_found(data: bytes) -> None:
    assert "bytes" in broken(data, PROOF)


@pytest.mark.parametrize(
    "proof",
    [b"", b"{}", b"[]\n", b"null\n", PROOF + b" ", b" " + PROOF, PROOF * 2, b"[" * 50_000],
    ids=range(8),
)
def test_what_is_no_proof_is_said_to_be_none(proof: bytes) -> None:
    assert broken(DATA, proof).startswith("the proof")


def test_a_proof_by_another_key_is_none() -> None:
    assert "not in your list" in broken(DATA, proof_of(DATA, keys=OTHER_KEYS))


def test_what_was_signed_for_another_purpose_is_no_proof() -> None:
    document = {"kind": KIND, "format": FORMAT, "bytes": 0, "sha256": ""}
    proof = canonicalize(KEYS.sign_document(document, purpose="deletion-certificate/1")) + b"\n"

    assert "is not valid" in broken(b"", proof)


def test_a_format_of_later_is_refused() -> None:
    assert "format" in broken(DATA, proof_of(DATA, format=FORMAT + 1))


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


def test_the_command_says_what_it_verified(
    export: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(export), "--public-key", str(keys)]) == OK
    assert "usage_days version 1, 29 rows, of the tenant acme" in capsys.readouterr().out


def test_the_command_says_what_is_wrong(
    export: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export.write_bytes(DATA.replace(b",7", b",8"))

    assert main([str(export), "--public-key", str(keys)]) == BROKEN
    assert "the data: it was changed" in capsys.readouterr().out


def test_keys_beside_an_export_are_not_taken(export: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main([str(export)])

    assert ended.value.code == UNUSABLE


@pytest.mark.parametrize("missing", ["usage.csv", "usage.csv.proof.json", "elsewhere/keys.json"])
def test_what_cannot_be_read_is_named(
    export: Path, keys: Path, missing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (export.parent / missing).unlink()

    assert main([str(export), "--public-key", str(keys)]) == UNUSABLE
    assert missing in capsys.readouterr().err


def test_the_command_needs_neither_settings_nor_network(export: Path, keys: Path) -> None:
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CARET_", "DJANGO_", "DATABASE_", "REDIS_"))
    }
    command = ["verify_export", str(export), "--public-key", str(keys)]

    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *command],
        env={**environment, "CARET_HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (done.returncode, done.stderr) == (OK, "")
    assert done.stdout.startswith("OK: usage_days")
