"""The token of an invitation."""

import uuid

import pytest

from caret.foundation.ids import TenantId
from tenants.invitations.token import digest_token, new_token, parse_token

TENANT = TenantId(str(uuid.uuid4()))


def test_a_token_names_its_tenant() -> None:
    token = new_token(TENANT)

    assert parse_token(token.text) == token
    assert token.tenant_id == TENANT


def test_no_two_tokens_are_alike() -> None:
    assert new_token(TENANT).text != new_token(TENANT).text


def test_a_token_is_not_in_its_representation() -> None:
    token = new_token(TENANT)

    assert token.text[8:] not in repr(token)


@pytest.mark.parametrize("text", ["", "civ_", "civ_AAAA", "civ_é", "civ_" + "A" * 65, "A" * 64])
def test_what_is_no_token_is_none(text: str) -> None:
    assert parse_token(text) is None


def test_the_same_secret_named_for_another_tenant_has_another_digest() -> None:
    token = new_token(TENANT)
    other = parse_token(new_token(TenantId(str(uuid.uuid4()))).text[:25] + token.text[25:])
    assert other is not None

    assert digest_token(b"pepper", other) != digest_token(b"pepper", token)
