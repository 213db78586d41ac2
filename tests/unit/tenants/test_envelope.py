"""Sealed data opens only in its own place, with its own key, unchanged."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from caret.foundation.crypto.aead import DecryptionFailed
from tenants.security.encryption.envelope import (
    SealContext,
    create_canary,
    data_key_id,
    data_key_place,
    fingerprint,
    new_key,
    opens_canary,
    seal_at,
    unseal_at,
    unwrap_data_key,
    wrap_data_key,
)
from tests.fakes.tenants import ACME, GLOBEX

KEY, OTHER = bytes(range(32)), bytes(32)
KEY_ID, OTHER_ID = UUID(int=1), UUID(int=2)
PLACE = SealContext(table="content_object", column="content", row="7")


def sealed() -> bytes:
    return seal_at(PLACE, b"text", tenant_id=ACME, key_id=KEY_ID, key=KEY)


def test_what_was_sealed_is_opened() -> None:
    assert unseal_at(PLACE, sealed(), tenant_id=ACME, key=KEY) == b"text"


def test_a_seal_says_which_key_opens_it() -> None:
    assert data_key_id(sealed()) == KEY_ID


@pytest.mark.parametrize(
    "place", [replace(PLACE, table="x"), replace(PLACE, column="x"), replace(PLACE, row="8")]
)
def test_a_seal_that_was_moved_does_not_open(place: SealContext) -> None:
    with pytest.raises(DecryptionFailed):
        unseal_at(place, sealed(), tenant_id=ACME, key=KEY)


def test_the_neighbour_opens_nothing_not_even_with_the_key() -> None:
    with pytest.raises(DecryptionFailed):
        unseal_at(PLACE, sealed(), tenant_id=GLOBEX, key=KEY)


def test_another_key_opens_nothing() -> None:
    with pytest.raises(DecryptionFailed):
        unseal_at(PLACE, sealed(), tenant_id=ACME, key=OTHER)


def test_a_seal_that_names_another_key_does_not_open() -> None:
    renamed = bytearray(sealed())
    renamed[1:17] = OTHER_ID.bytes

    with pytest.raises(DecryptionFailed):
        unseal_at(PLACE, bytes(renamed), tenant_id=ACME, key=KEY)


@pytest.mark.parametrize("changed", range(17 + 12 + 4 + 16))
def test_a_changed_seal_does_not_open(changed: int) -> None:
    data = bytearray(sealed())
    data[changed] ^= 1

    with pytest.raises(DecryptionFailed):
        unseal_at(PLACE, bytes(data), tenant_id=ACME, key=KEY)


@pytest.mark.parametrize("length", [0, 1, 16, 17, 28, 44])
def test_a_torn_seal_does_not_open(length: int) -> None:
    with pytest.raises(DecryptionFailed):
        unseal_at(PLACE, sealed()[:length], tenant_id=ACME, key=KEY)


@pytest.mark.parametrize(
    "changes",
    [{"tenant_id": GLOBEX}, {"scope": "user:b"}, {"key_id": OTHER_ID}, {"tenant_key_id": OTHER_ID}],
)
def test_a_wrapped_key_opens_in_its_own_row_only(changes: dict[str, Any]) -> None:
    own: dict[str, Any] = {
        "tenant_id": ACME,
        "scope": "user:a",
        "key_id": KEY_ID,
        "tenant_key_id": KEY_ID,
    }
    place, elsewhere = data_key_place(**own), data_key_place(**(own | changes))
    wrapped = wrap_data_key(KEY, tenant_key=OTHER, bound_to=place)

    assert unwrap_data_key(wrapped, tenant_key=OTHER, bound_to=place) == KEY
    with pytest.raises(DecryptionFailed):
        unwrap_data_key(wrapped, tenant_key=OTHER, bound_to=elsewhere)


def test_a_witness_is_opened_by_its_key_alone() -> None:
    witness = create_canary(KEY, KEY_ID)

    assert opens_canary(KEY, witness, KEY_ID)
    assert not opens_canary(OTHER, witness, KEY_ID)


def test_a_fingerprint_tells_keys_apart_and_holds_none() -> None:
    key = new_key()

    assert fingerprint(key) == fingerprint(key) != fingerprint(new_key())
    assert len(fingerprint(key)) == 16
    assert fingerprint(key) not in key
