"""The verification of an audit export detects changes.

The error names the changed line or entry. An export has a header, entries with signed chain heads
("heads") between them, and a trailer. Each is one line, so entry 5 is on line 6.
"""

import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from caret.foundation.crypto.canonical_json import canonicalize
from caret.foundation.crypto.signing import write_public_keys
from tenants.security.audit.export_verification import VerificationFailed
from tenants.security.audit.hash_chain import add_hash
from tests.fakes.audit_export import (
    KEYS,
    OTHER_KEYS,
    export_of,
    make_chain,
    signed_by,
    signed_head,
    verify,
)

ROOT = Path(__file__).resolve().parents[3]
VALID = export_of(make_chain(20), heads_after=(8, 15))
TEXT = VALID.sign()
LINES = TEXT.splitlines(keepends=True)


def verification_error(text: bytes) -> str:
    """Check that the verification of the text fails, and return its error message."""
    with pytest.raises(VerificationFailed) as exc_info:
        verify(text)
    return str(exc_info.value)


def join(lines: list[bytes]) -> bytes:
    return b"".join(lines)


def test_an_unchanged_export_is_valid() -> None:
    assert verify(TEXT).num_heads == 2


def test_a_part_of_the_chain_is_valid() -> None:
    verify(export_of(make_chain(20)[4:11], heads_after=(8,)).sign())


def test_a_hundred_random_byte_changes_are_detected() -> None:
    random_ = random.Random(8)
    for _ in range(100):
        position, mask = random_.randrange(len(TEXT)), random_.randrange(1, 256)
        line_number = TEXT[:position].count(b"\n") + 1
        changed_text = bytearray(TEXT)
        changed_text[position] ^= mask

        message = verification_error(bytes(changed_text))

        assert f"line {line_number}" in message


@pytest.mark.parametrize("first", range(20))
def test_a_change_of_any_byte_of_the_trailer_is_detected(first: int) -> None:
    begin = len(TEXT) - len(LINES[-1])
    for offset in range(begin + first, len(TEXT), 20):  # every twentieth byte in each run
        changed_text = bytearray(TEXT)
        changed_text[offset] ^= 1

        verification_error(bytes(changed_text))


@pytest.mark.parametrize("number", [1, 6, len(LINES)], ids=["header", "entry", "trailer"])
@pytest.mark.parametrize(
    ("notation", "other_notation"),
    [
        (b'{"', b'{ "'),
        (b'"kind":', b'"kind":"x","kind":'),
        (b"\n", b"\r\n"),
        (b"kind", b"k\\u0069nd"),
    ],
)
def test_another_notation_of_the_same_content_is_detected_with_its_line(
    number: int, notation: bytes, other_notation: bytes
) -> None:
    changed_lines = [*LINES]
    changed_lines[number - 1] = changed_lines[number - 1].replace(notation, other_notation, 1)

    assert f"line {number}" in verification_error(join(changed_lines))


def test_a_changed_entry_is_named() -> None:
    changed_lines = [*LINES]
    changed_lines[5] = changed_lines[5].replace(b"laptop", b"tablet")

    assert "line 6, entry 5: its content does not match its hash" in verification_error(
        join(changed_lines)
    )


def test_an_entry_changed_with_its_hash_is_detected_at_the_next_entry() -> None:
    entries = make_chain(20)
    entries[4] = add_hash({**entries[4], "action": "nothing"})

    assert "entry 6: it does not follow from entry 5" in verification_error(
        join([LINES[0], *[canonicalize(entry) + b"\n" for entry in entries]])
    )


def test_a_dropped_entry_is_named() -> None:
    assert "entry 5: it is missing; entry 6 is in its place" in verification_error(
        join([*LINES[:5], *LINES[6:]])
    )


def test_a_duplicated_entry_is_named() -> None:
    assert "entry 6: it is missing; entry 5 is in its place" in verification_error(
        join([*LINES[:6], LINES[5], *LINES[6:]])
    )


def test_two_swapped_entries_are_named() -> None:
    swapped = [*LINES[:5], LINES[6], LINES[5], *LINES[7:]]

    assert "entry 5: it is missing; entry 6 is in its place" in verification_error(join(swapped))


@pytest.mark.parametrize("length", range(0, len(TEXT), 97))
def test_a_truncated_export_is_detected(length: int) -> None:
    verification_error(TEXT[:length])


def test_missing_entries_at_the_end_are_named() -> None:
    # The first eleven lines are the header, eight entries, a signed head, and entry 9.
    assert verification_error(join(LINES[:11])) == "the entries 10 to 20 are missing"


def test_a_missing_trailer_is_detected() -> None:
    assert "without its trailer" in verification_error(join(LINES[:-1]))


def test_a_trailer_does_not_hide_missing_entries() -> None:
    assert "the entries 10 to 20 are missing" in verification_error(join([*LINES[:11], LINES[-1]]))


def test_text_after_the_end_is_detected() -> None:
    assert "after the end" in verification_error(TEXT + b"{}\n")


def test_a_removed_signed_head_is_detected() -> None:
    without = [line for line in LINES if b'"kind":"head"' not in line]

    assert "lines were changed or removed" in verification_error(join(without))


def test_the_header_of_another_export_is_detected() -> None:
    other_export = (
        export_of(make_chain(20, first_action="another")).sign().splitlines(keepends=True)
    )

    assert "it was replaced" in verification_error(join([other_export[0], *LINES[1:]]))


def test_the_header_of_another_tenant_is_detected() -> None:
    other_export = export_of(
        make_chain(20, tenant_id="7e9d6c5b-0000-4000-8000-000000000000")
    ).sign()

    header = other_export.splitlines(keepends=True)[0]
    assert "entry 1: it is another tenant's" in verification_error(join([header, *LINES[1:]]))


def test_a_changed_header_is_named() -> None:
    changed_header = LINES[0].replace(b'"tenant":"acme"', b'"tenant":"acne"')

    assert "the header: the signature" in verification_error(join([changed_header, *LINES[1:]]))


def test_a_wrong_number_of_entries_in_the_header_is_named() -> None:
    wrong = replace(VALID, header=VALID.header | {"rows": 19})

    assert "the header: it states 19 entries, but the export has 20" in verification_error(
        wrong.sign()
    )


def test_a_wrong_number_of_entries_in_the_trailer_is_named() -> None:
    assert "the trailer: it states 19 entries, but the header states 20" in verification_error(
        VALID.sign(trailer_rows=19)
    )


def test_the_signature_of_another_installation_is_detected() -> None:
    assert "not in your list" in verification_error(signed_by(VALID, OTHER_KEYS).sign())


def test_a_signature_of_another_installation_with_our_key_id_is_detected() -> None:
    our_key_id, their_key_id = (
        KEYS.public_keys().keys[0].key_id,
        OTHER_KEYS.public_keys().keys[0].key_id,
    )
    text = signed_by(VALID, OTHER_KEYS).sign().replace(their_key_id.encode(), our_key_id.encode())

    assert "is not valid" in verification_error(text)


def test_a_rewritten_chain_without_the_key_is_detected() -> None:
    rewritten = export_of(make_chain(20, first_action="harmless")).sign().splitlines(keepends=True)

    assert "another hash for it; it was replaced" in verification_error(
        join([LINES[0], *rewritten[1:]])
    )


def test_a_rewritten_chain_contradicts_its_signed_heads() -> None:
    """The installation signs the rewritten chain. An earlier signed head proves the change."""
    rewritten = export_of(make_chain(20, first_action="harmless"))
    head = signed_head(make_chain(20)[7])
    rewritten.body.insert(8, head)

    assert "entry 8, or one before it, was replaced" in verification_error(rewritten.sign())


def test_a_signed_head_of_another_installation_is_detected() -> None:
    export = export_of(make_chain(20))
    export.body.insert(8, signed_head(export.body[7], OTHER_KEYS))

    assert "a signed head: it is signed with a key that is not" in verification_error(export.sign())


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"{}\n",
        b"[]\n",
        b"null\n",
        b"\xff\xfe\n",
        b'{"a":NaN}\n',
        b"[" * 100_000 + b"\n",
    ],
)
def test_a_malformed_line_causes_no_unexpected_error(line: bytes) -> None:
    verification_error(join([*LINES[:5], line, *LINES[6:]]))
    verification_error(line)


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the verifier without settings, home and database."""
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "verify_audit", *map(str, arguments)],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "HOME": str(cwd), "CARET_HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "export.ndjson").write_bytes(TEXT)
    (tmp_path / "keys.json").write_text(write_public_keys(KEYS.public_keys()))
    return tmp_path


def test_the_command_needs_only_the_export_and_the_keys(folder: Path) -> None:
    result = run("export.ndjson", "--public-key", "keys.json", cwd=folder)

    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("OK: 20 entries, 1 to 20, of the tenant acme")


def test_the_command_ignores_keys_beside_the_export(folder: Path) -> None:
    (folder / "keys.json").rename(folder / "caret-signing-keys.json")

    result = run("export.ndjson", cwd=folder)

    assert (result.returncode, result.stdout) == (2, "")
    assert "--public-key" in result.stderr


def test_the_command_names_the_first_invalid_entry(folder: Path) -> None:
    (folder / "export.ndjson").write_bytes(TEXT.replace(b"laptop", b"tablet"))

    result = run("export.ndjson", "--public-key", "keys.json", cwd=folder)

    assert result.returncode == 1
    assert result.stdout.startswith("BROKEN: line 2, entry 1: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("export.ndjson", "--public-key", "none.json"), "public keys cannot be read"),
        (("nothing", "--public-key", "keys.json"), "nothing cannot be read"),
        (("export.ndjson", "--public-key", "export.ndjson"), "not a file of public keys"),
    ],
)
def test_the_command_reports_a_file_that_it_cannot_read(
    folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = run(*arguments, cwd=folder)

    assert result.returncode == 2
    assert message in result.stderr
