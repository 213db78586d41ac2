"""Bearer tokens, such as those of invitations and of SCIM, contain the ID of their tenant.

The prefix tells the kind of token: "civ_" for an invitation, "csc_" for SCIM.
"""

import uuid

import pytest

from caret.foundation.ids import TenantId
from tenants.base.bearer_tokens import BearerTokenKind, create_token, parse_token, token_digest

TENANT = TenantId(str(uuid.uuid4()))
OTHER = TenantId(str(uuid.uuid4()))


@pytest.mark.parametrize("kind", list(BearerTokenKind))
def test_a_token_contains_its_tenant(kind: BearerTokenKind) -> None:
    token = create_token(kind, TENANT)

    assert parse_token(kind, token.text) == token
    assert token.tenant_id == TENANT


def test_generated_tokens_are_distinct() -> None:
    assert (
        create_token(BearerTokenKind.SCIM, TENANT).text
        != create_token(BearerTokenKind.SCIM, TENANT).text
    )


def test_the_repr_of_a_token_does_not_contain_its_text() -> None:
    token = create_token(BearerTokenKind.SCIM, TENANT)

    # The beginning of a token names its kind and its tenant. The rest is secret.
    assert token.text[-40:] not in repr(token)


@pytest.mark.parametrize("text", ["", "civ_", "civ_AAAA", "civ_é", "civ_" + "A" * 65, "A" * 64])
def test_an_invalid_text_is_no_token(text: str) -> None:
    assert parse_token(BearerTokenKind.INVITATION, text) is None


def test_a_token_is_invalid_as_another_kind() -> None:
    token = create_token(BearerTokenKind.INVITATION, TENANT)

    assert parse_token(BearerTokenKind.SCIM, token.text) is None
    assert parse_token(BearerTokenKind.SCIM, "csc_" + token.text[4:]) != token


def test_the_digest_depends_on_the_tenant() -> None:
    token = create_token(BearerTokenKind.SCIM, TENANT)
    # The prefix "csc_" and the first 21 characters of the tenant's ID in base64.
    forged = create_token(BearerTokenKind.SCIM, OTHER).text[:25] + token.text[25:]
    other_token = parse_token(BearerTokenKind.SCIM, forged)
    assert other_token is not None

    assert token_digest(other_token) != token_digest(token)
