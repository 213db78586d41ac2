"""API keys: their format, and rejection before any lookup."""

import hashlib
import hmac
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caret.contracts.api_key import (
    KEY_PATTERN,
    KeyKind,
    digest_key,
    generate_key,
    parse_key,
)

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PEPPER = bytes(32)
_NUM_CHECKSUM_CHARS = 6


@pytest.mark.parametrize("kind", list(KeyKind))
def test_a_new_key_has_the_published_format(kind: KeyKind) -> None:
    key = generate_key(kind)

    assert KEY_PATTERN.fullmatch(key.text) is not None
    assert key.text.startswith(f"cpk_{kind}_{key.lookup_id}")
    assert len(key.lookup_id) == 8


@pytest.mark.parametrize("kind", list(KeyKind))
def test_parsing_the_text_of_a_new_key_restores_the_key(kind: KeyKind) -> None:
    key = generate_key(kind)

    assert parse_key(key.text) == key


def test_generated_keys_are_distinct() -> None:
    keys = {generate_key(KeyKind.DEVELOPER).text for _ in range(1_000)}

    assert len(keys) == 1_000


def test_a_key_ends_with_its_checksum() -> None:
    text = generate_key(KeyKind.SERVICE).text

    body, checksum_text = text[:-_NUM_CHECKSUM_CHARS], text[-_NUM_CHECKSUM_CHARS:]
    checksum = 0
    for character in checksum_text:  # a number in base 62
        checksum = checksum * len(ALPHABET) + ALPHABET.index(character)
    assert checksum == zlib.crc32(body.encode())


def test_a_changed_character_is_rejected() -> None:
    text = generate_key(KeyKind.DEVELOPER).text

    for position in range(len("cpk_live_"), len(text)):
        changed_character = "x" if text[position] != "x" else "y"
        assert parse_key(text[:position] + changed_character + text[position + 1 :]) is None


@pytest.mark.parametrize(
    "text",
    # A key has 57 characters after its prefix; a key of zeros has a wrong checksum.
    ["", "cpk_live_", "sk-123", "cpk_live_" + "0" * 57, "CPK_live_" + "0" * 57, "cpk_prod_x"],
)
def test_a_text_that_is_no_key_is_rejected(text: str) -> None:
    assert parse_key(text) is None


def test_a_key_with_surrounding_space_is_rejected() -> None:
    text = generate_key(KeyKind.DEVELOPER).text

    assert parse_key(text + "\n") is None
    assert parse_key(" " + text) is None


@given(st.text(max_size=100))
def test_the_parser_never_raises(text: str) -> None:
    assert parse_key(text) is None or KEY_PATTERN.fullmatch(text)


def test_the_digest_is_an_hmac_of_the_whole_key() -> None:
    key = generate_key(KeyKind.DEVELOPER)

    assert digest_key(PEPPER, key) == hmac.digest(PEPPER, key.text.encode(), hashlib.sha256)


def test_another_pepper_gives_another_digest() -> None:
    key = generate_key(KeyKind.DEVELOPER)

    assert digest_key(PEPPER, key) != digest_key(b"\1" * 32, key)


def test_the_repr_of_a_key_does_not_contain_its_text() -> None:
    key = generate_key(KeyKind.DEVELOPER)

    assert key.text not in repr(key)
