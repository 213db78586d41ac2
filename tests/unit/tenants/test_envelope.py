"""Sealed data opens only in its own context, with its own key, and unchanged."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from caret.foundation.crypto.aead import DecryptionFailed
from tenants.security.encryption.envelope import (
    SealContext,
    build_data_key_context,
    can_open_canary,
    compute_key_fingerprint,
    create_canary,
    generate_key,
    read_data_key_id,
    seal_at,
    unseal_at,
    unwrap_data_key,
    wrap_data_key,
)
from tests.fakes.tenants import ACME, GLOBEX

KEY, OTHER = bytes(range(32)), bytes(32)
KEY_ID, OTHER_ID = UUID(int=1), UUID(int=2)
CONTEXT = SealContext(table="content_object", column="content", row="7")


def sealed() -> bytes:
    return seal_at(CONTEXT, b"text", tenant_id=ACME, key_id=KEY_ID, key=KEY)


def test_sealed_data_can_be_opened() -> None:
    assert unseal_at(CONTEXT, sealed(), tenant_id=ACME, key=KEY) == b"text"


def test_sealed_data_names_its_key() -> None:
    assert read_data_key_id(sealed()) == KEY_ID


@pytest.mark.parametrize(
    "context",
    [replace(CONTEXT, table="x"), replace(CONTEXT, column="x"), replace(CONTEXT, row="8")],
)
def test_data_sealed_for_another_context_does_not_open(context: SealContext) -> None:
    with pytest.raises(DecryptionFailed):
        unseal_at(context, sealed(), tenant_id=ACME, key=KEY)


def test_another_tenant_cannot_open_data_even_with_the_key() -> None:
    with pytest.raises(DecryptionFailed):
        unseal_at(CONTEXT, sealed(), tenant_id=GLOBEX, key=KEY)


def test_another_key_does_not_open_the_data() -> None:
    with pytest.raises(DecryptionFailed):
        unseal_at(CONTEXT, sealed(), tenant_id=ACME, key=OTHER)


def test_data_that_names_another_key_does_not_open() -> None:
    renamed = bytearray(sealed())
    renamed[1:17] = OTHER_ID.bytes  # the bytes of the key's ID

    with pytest.raises(DecryptionFailed):
        unseal_at(CONTEXT, bytes(renamed), tenant_id=ACME, key=KEY)


# The bytes of the sealed data: a version, the key's ID, a nonce, the text, and a tag.
NUM_BYTES = 1 + 16 + 12 + 4 + 16


@pytest.mark.parametrize("position", range(NUM_BYTES))
def test_changed_data_does_not_open(position: int) -> None:
    data = bytearray(sealed())
    data[position] ^= 1

    with pytest.raises(DecryptionFailed):
        unseal_at(CONTEXT, bytes(data), tenant_id=ACME, key=KEY)


@pytest.mark.parametrize("length", range(NUM_BYTES))
def test_truncated_data_does_not_open(length: int) -> None:
    with pytest.raises(DecryptionFailed):
        unseal_at(CONTEXT, sealed()[:length], tenant_id=ACME, key=KEY)


@pytest.mark.parametrize(
    "changes",
    [{"tenant_id": GLOBEX}, {"scope": "user:b"}, {"key_id": OTHER_ID}, {"tenant_key_id": OTHER_ID}],
)
def test_a_wrapped_key_opens_only_in_its_own_row(changes: dict[str, Any]) -> None:
    own: dict[str, Any] = {
        "tenant_id": ACME,
        "scope": "user:a",
        "key_id": KEY_ID,
        "tenant_key_id": KEY_ID,
    }
    context = build_data_key_context(**own)
    other_context = build_data_key_context(**(own | changes))
    wrapped_key = wrap_data_key(KEY, tenant_key=OTHER, bound_to=context)

    assert unwrap_data_key(wrapped_key, tenant_key=OTHER, bound_to=context) == KEY
    with pytest.raises(DecryptionFailed):
        unwrap_data_key(wrapped_key, tenant_key=OTHER, bound_to=other_context)


def test_a_canary_opens_only_with_its_key() -> None:
    """A canary is a known text, sealed with a key. It shows whether the key still exists."""
    canary = create_canary(KEY, KEY_ID)

    assert can_open_canary(KEY, canary, KEY_ID)
    assert not can_open_canary(OTHER, canary, KEY_ID)


def test_a_fingerprint_identifies_a_key_without_revealing_it() -> None:
    key = generate_key()

    assert (
        compute_key_fingerprint(key)
        == compute_key_fingerprint(key)
        != compute_key_fingerprint(generate_key())
    )
    assert len(compute_key_fingerprint(key)) == 16
    assert compute_key_fingerprint(key) not in key
