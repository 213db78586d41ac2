"""Changes of an audit export are found and named."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from caret.foundation.crypto.canonical_json import canonicalize
from caret.foundation.crypto.signing import write_public_keys
from tenants.security.audit.export_verification import VerificationFailed
from tenants.security.audit.hash_chain import add_hash
from tests.fakes.audit_export import (
    KEYS,
    OTHER_KEYS,
    chain,
    export_of,
    signed_by,
    signed_head,
    verified,
)

ROOT = Path(__file__).resolve().parents[3]
SOUND = export_of(chain(20), heads_after=(8, 15))
TEXT = SOUND.text()
LINES = TEXT.splitlines(keepends=True)


def broken(text: bytes) -> str:
    with pytest.raises(VerificationFailed) as caught:
        verified(text)
    return str(caught.value)


def joined(lines: list[bytes]) -> bytes:
    return b"".join(lines)


def test_a_sound_export_is_sound() -> None:
    assert verified(TEXT).num_heads == 2


def test_a_part_of_the_chain_is_sound() -> None:
    verified(export_of(chain(20)[4:11], heads_after=(8,)).text())


def test_a_hundred_random_changes_of_one_byte_are_found() -> None:
    chance = random.Random(8)
    for _ in range(100):
        place, mask = chance.randrange(len(TEXT)), chance.randrange(1, 256)
        changed = bytearray(TEXT)
        changed[place] ^= mask

        where = broken(bytes(changed))

        assert f"line {TEXT[:place].count(10) + 1}" in where


@pytest.mark.parametrize("place", range(20))
def test_every_byte_of_the_trailer_counts(place: int) -> None:
    begin = len(TEXT) - len(LINES[-1])
    for offset in range(begin + place, len(TEXT), 20):
        changed = bytearray(TEXT)
        changed[offset] ^= 1
        broken(bytes(changed))


@pytest.mark.parametrize("number", [1, 6, len(LINES)])
@pytest.mark.parametrize(
    ("spelling", "another"),
    [
        (b'{"', b'{ "'),
        (b'"kind":', b'"kind":"x","kind":'),
        (b"\n", b"\r\n"),
        (b"kind", b"k\\u0069nd"),
    ],
)
def test_another_spelling_of_the_same_is_found_in_its_line(
    number: int, spelling: bytes, another: bytes
) -> None:
    changed = [*LINES]
    changed[number - 1] = changed[number - 1].replace(spelling, another, 1)

    assert f"line {number}" in broken(joined(changed))


def test_a_changed_entry_is_named() -> None:
    changed = [*LINES]
    changed[5] = changed[5].replace(b"laptop", b"tablet")

    assert "line 6, entry 5: its content does not match its hash" in broken(joined(changed))


def test_an_entry_that_was_changed_with_its_hash_is_named_by_the_next() -> None:
    entries = chain(20)
    entries[4] = add_hash({**entries[4], "action": "nothing"})

    assert "entry 6: it does not follow from entry 5" in broken(
        joined([LINES[0], *[canonicalize(entry) + b"\n" for entry in entries]])
    )


def test_a_dropped_entry_is_named() -> None:
    assert "entry 5: it is missing; entry 6 is in its place" in broken(
        joined([*LINES[:5], *LINES[6:]])
    )


def test_a_doubled_entry_is_named() -> None:
    assert "entry 6: it is missing; entry 5 is in its place" in broken(
        joined([*LINES[:6], LINES[5], *LINES[6:]])
    )


def test_two_entries_in_each_others_place_are_named() -> None:
    swapped = [*LINES[:5], LINES[6], LINES[5], *LINES[7:]]

    assert "entry 5: it is missing; entry 6 is in its place" in broken(joined(swapped))


@pytest.mark.parametrize("length", range(0, len(TEXT), 97))
def test_an_export_that_was_cut_off_is_found(length: int) -> None:
    broken(TEXT[:length])


def test_an_export_that_ends_after_an_entry_names_what_is_missing() -> None:
    assert broken(joined(LINES[:11])) == "the entries 10 to 20 are missing"


def test_an_export_without_its_trailer_is_found() -> None:
    assert "without its trailer" in broken(joined(LINES[:-1]))


def test_the_trailer_alone_replaces_no_entries() -> None:
    assert "the entries 10 to 20 are missing" in broken(joined([*LINES[:11], LINES[-1]]))


def test_something_after_the_end_is_found() -> None:
    assert "after the end" in broken(TEXT + b"{}\n")


def test_a_removed_signed_head_is_found() -> None:
    without = [line for line in LINES if b'"kind":"head"' not in line]

    assert "lines were changed or removed" in broken(joined(without))


def test_another_exports_header_is_found() -> None:
    other = export_of(chain(20, first="another")).text().splitlines(keepends=True)

    assert "it was replaced" in broken(joined([other[0], *LINES[1:]]))


def test_another_tenants_header_is_found() -> None:
    other = export_of(chain(20, tenant_id="7e9d6c5b-0000-4000-8000-000000000000")).text()

    header = other.splitlines(keepends=True)[0]
    assert "entry 1: it is another tenant's" in broken(joined([header, *LINES[1:]]))


def test_a_header_that_was_changed_is_named() -> None:
    changed = LINES[0].replace(b'"tenant":"acme"', b'"tenant":"acne"')

    assert "the header: the signature" in broken(joined([changed, *LINES[1:]]))


def test_another_installations_signature_is_found() -> None:
    assert "not in your list" in broken(signed_by(SOUND, OTHER_KEYS).text())


def test_another_installations_signature_under_our_keys_id_is_found() -> None:
    ours, theirs = KEYS.public_keys().keys[0].key_id, OTHER_KEYS.public_keys().keys[0].key_id
    text = signed_by(SOUND, OTHER_KEYS).text().replace(theirs.encode(), ours.encode())

    assert "is not valid" in broken(text)


def test_a_chain_that_was_written_anew_without_the_key_is_found() -> None:
    anew = export_of(chain(20, first="harmless")).text().splitlines(keepends=True)

    assert "another hash for it; it was replaced" in broken(joined([LINES[0], *anew[1:]]))


def test_a_chain_that_was_written_anew_in_the_database_contradicts_its_signed_heads() -> None:
    """The installation signs the content of its database; an earlier signed head proves the
    change."""
    anew = export_of(chain(20, first="harmless"))
    head = signed_head(chain(20)[7])
    anew.body.insert(8, head)

    assert "entry 8, or one before it, was replaced" in broken(anew.text())


def test_a_head_of_another_installation_is_found() -> None:
    export = export_of(chain(20))
    export.body.insert(8, signed_head(export.body[7], OTHER_KEYS))

    assert "a signed head: it is signed with a key that is not" in broken(export.text())


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
def test_what_is_no_line_of_an_export_is_no_crash(line: bytes) -> None:
    broken(joined([*LINES[:5], line, *LINES[6:]]))
    broken(line)


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


def test_the_command_needs_the_export_and_the_keys_alone(folder: Path) -> None:
    done = run("export.ndjson", "--public-key", "keys.json", cwd=folder)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("OK: 20 entries, 1 to 20, of the tenant acme")


def test_the_command_takes_no_keys_from_beside_the_export(folder: Path) -> None:
    (folder / "keys.json").rename(folder / "caret-signing-keys.json")

    done = run("export.ndjson", cwd=folder)

    assert (done.returncode, done.stdout) == (2, "")
    assert "--public-key" in done.stderr


def test_the_command_names_the_first_bad_entry(folder: Path) -> None:
    (folder / "export.ndjson").write_bytes(TEXT.replace(b"laptop", b"tablet"))

    done = run("export.ndjson", "--public-key", "keys.json", cwd=folder)

    assert done.returncode == 1
    assert done.stdout.startswith("BROKEN: line 2, entry 1: ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("export.ndjson", "--public-key", "none.json"), "public keys cannot be read"),
        (("nothing", "--public-key", "keys.json"), "nothing cannot be read"),
        (("export.ndjson", "--public-key", "export.ndjson"), "not a file of public keys"),
    ],
)
def test_the_command_says_what_it_lacks(
    folder: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = run(*arguments, cwd=folder)

    assert done.returncode == 2
    assert said in done.stderr
