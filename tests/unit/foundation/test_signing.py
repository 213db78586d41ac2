"""Signatures are valid only for their data, their purpose and their key."""

import json

import pytest

from caret.foundation.crypto.signing import (
    BadPublicKeys,
    BadSignature,
    Signature,
    SigningKeys,
    UnknownKey,
    read_public_keys,
    verify,
    verify_document,
    write_public_keys,
)

SECRET = bytes(range(32))
KEYS = SigningKeys(SECRET, version=1)
PUBLIC = KEYS.public_keys()


def test_a_signature_is_valid_for_its_data() -> None:
    verify(PUBLIC, b"data", KEYS.sign(b"data", purpose="test/1"), purpose="test/1")


@pytest.mark.parametrize(("data", "purpose"), [(b"dada", "test/1"), (b"data", "other/1")])
def test_a_signature_is_invalid_for_other_data_or_purposes(data: bytes, purpose: str) -> None:
    signature = KEYS.sign(b"data", purpose="test/1")

    with pytest.raises(BadSignature):
        verify(PUBLIC, data, signature, purpose=purpose)


def test_the_key_of_a_signature_of_another_installation_is_unknown() -> None:
    other_signature = SigningKeys(bytes(32), version=1).sign(b"data", purpose="test/1")

    with pytest.raises(UnknownKey):
        verify(PUBLIC, b"data", other_signature, purpose="test/1")


def test_a_signature_of_another_installation_with_our_key_id_is_invalid() -> None:
    other_signature = SigningKeys(bytes(32), version=1).sign(b"data", purpose="test/1")
    forged_signature = Signature(PUBLIC.keys[0].key_id, other_signature.value)

    with pytest.raises(BadSignature, match="is not valid"):
        verify(PUBLIC, b"data", forged_signature, purpose="test/1")


def test_signatures_stay_valid_after_a_rotation() -> None:
    old_signature = KEYS.sign(b"data", purpose="test/1")
    rotated = SigningKeys(SECRET, version=2)

    verify(rotated.public_keys(), b"data", old_signature, purpose="test/1")

    old_key, new_key = rotated.public_keys().keys
    assert (old_key.is_current, new_key.is_current) == (False, True)
    assert rotated.sign(b"data", purpose="test/1").key_id == new_key.key_id


def test_a_signed_document_is_valid() -> None:
    signed = KEYS.sign_document({"b": 1, "a": "x"}, purpose="test/1")

    verify_document(PUBLIC, signed, purpose="test/1")


@pytest.mark.parametrize(
    "change",
    [
        {"a": "y"},
        {"extra": None},
        {"signature": ""},
        {"signature": None},
        {"key_id": 7},
        {"signature": "00" * 64},
        {"a": 2**60},  # larger than the integers of canonical JSON
    ],
)
def test_a_changed_document_is_invalid(change: dict[str, object]) -> None:
    signed = KEYS.sign_document({"a": "x"}, purpose="test/1")

    with pytest.raises(BadSignature):
        verify_document(PUBLIC, {**signed, **change}, purpose="test/1")


def test_a_signature_in_capital_hexadecimal_digits_is_invalid() -> None:
    signed = KEYS.sign_document({"a": "x"}, purpose="test/1")
    changed = {**signed, "signature": signed["signature"].upper()}

    with pytest.raises(BadSignature):
        verify_document(PUBLIC, changed, purpose="test/1")


def test_public_keys_survive_writing_and_reading() -> None:
    assert read_public_keys(write_public_keys(PUBLIC).encode()) == PUBLIC


def test_a_public_key_with_a_wrong_id_is_rejected() -> None:
    document = json.loads(write_public_keys(PUBLIC))
    document["keys"][0]["key_id"] = "0" * 16

    with pytest.raises(BadPublicKeys):
        read_public_keys(json.dumps(document).encode())


@pytest.mark.parametrize("text", [b"", b"{}", b'{"keys": []}', b"\xff", b'{"keys": [{}]}'])
def test_a_file_without_keys_is_rejected(text: bytes) -> None:
    with pytest.raises(BadPublicKeys):
        read_public_keys(text)


def test_published_keys_do_not_contain_the_secret() -> None:
    published = write_public_keys(PUBLIC)

    assert SECRET.hex() not in published
    assert len(PUBLIC.keys[0].public_key) == 64  # hexadecimal digits of 32 bytes
