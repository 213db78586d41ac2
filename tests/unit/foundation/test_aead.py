"""Sealed data opens only with the key and the context to which it is bound."""

import pytest

from caret.foundation.crypto.aead import DecryptionFailed, seal, unseal

KEY = bytes(range(32))


def test_sealed_data_can_be_opened() -> None:
    assert unseal(KEY, seal(KEY, b"text", bound_to=b"row 1"), bound_to=b"row 1") == b"text"


def test_sealed_data_reveals_only_its_length() -> None:
    first, second = (seal(KEY, b"text", bound_to=b"row 1") for _ in range(2))

    assert b"text" not in first
    assert first != second
    assert len(first) == 12 + 4 + 16  # the nonce, the encrypted text and the tag


@pytest.mark.parametrize("position", range(32))
def test_changed_data_does_not_open(position: int) -> None:
    sealed = bytearray(seal(KEY, b"text", bound_to=b"row 1"))
    sealed[position] ^= 1

    with pytest.raises(DecryptionFailed):
        unseal(KEY, bytes(sealed), bound_to=b"row 1")


def test_data_sealed_for_another_context_does_not_open() -> None:
    with pytest.raises(DecryptionFailed):
        unseal(KEY, seal(KEY, b"text", bound_to=b"row 1"), bound_to=b"row 2")


@pytest.mark.parametrize("length", [0, 5, 12, 27])
def test_truncated_data_does_not_open(length: int) -> None:
    sealed = seal(KEY, b"text", bound_to=b"")

    with pytest.raises(DecryptionFailed):
        unseal(KEY, sealed[:length], bound_to=b"")
