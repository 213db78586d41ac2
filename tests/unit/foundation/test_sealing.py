"""Sealed data opens only with the key and the context to which it is bound."""

import pytest

from caret.foundation.crypto.aead import DecryptionFailed, seal, unseal

KEY = bytes(range(32))


def test_what_was_sealed_is_opened() -> None:
    assert unseal(KEY, seal(KEY, b"text", bound_to=b"row 1"), bound_to=b"row 1") == b"text"


def test_a_seal_shows_nothing_but_a_length() -> None:
    first, second = (seal(KEY, b"text", bound_to=b"row 1") for _ in range(2))

    assert b"text" not in first
    assert first != second
    assert len(first) == 12 + 4 + 16


@pytest.mark.parametrize("changed", range(32))
def test_a_changed_seal_does_not_open(changed: int) -> None:
    sealed = bytearray(seal(KEY, b"text", bound_to=b"row 1"))
    sealed[changed] ^= 1

    with pytest.raises(DecryptionFailed):
        unseal(KEY, bytes(sealed), bound_to=b"row 1")


def test_a_seal_that_was_moved_does_not_open() -> None:
    with pytest.raises(DecryptionFailed):
        unseal(KEY, seal(KEY, b"text", bound_to=b"row 1"), bound_to=b"row 2")


@pytest.mark.parametrize("length", [0, 5, 12, 27])
def test_a_torn_seal_does_not_open(length: int) -> None:
    sealed = seal(KEY, b"text", bound_to=b"")

    with pytest.raises(DecryptionFailed):
        unseal(KEY, sealed[:length], bound_to=b"")
