"""SCIM requests with an invalid token or an invalid body are refused."""

import pytest
from django.test import Client
from django.utils import timezone

from caret.contracts.snapshot import TenantStatus
from tenants.identity.members.tenant_status import set_status
from tenants.identity.scim.tokens import list_scim_tokens, revoke_scim_token
from tests.fixtures.companies import Company
from tests.fixtures.users import make_scim_token
from tests.integration.scim.provider import Provider


def test_a_revoked_token_is_refused(company: Company) -> None:
    token_id, text = make_scim_token(company)
    before = Provider(text).request("GET", "Users").status_code
    token = next(row for row in list_scim_tokens(actor=company.platform) if str(row.id) == token_id)

    revoke_scim_token(actor=company.platform, token_id=token.id, now=timezone.now())

    assert (before, Provider(text).request("GET", "Users").status_code) == (200, 401)


@pytest.mark.parametrize("text", ["", "csc_", "nonsense", "csc_" + "A" * 64])
def test_an_invalid_token_is_refused(text: str) -> None:
    response = Provider(text).request("GET", "Users")

    assert response.status_code == 401
    assert response["WWW-Authenticate"].startswith("Bearer")


def test_a_suspended_tenants_token_is_refused(company: Company, provider: Provider) -> None:
    set_status(actor=company.platform, status=TenantStatus.SUSPENDED, reason="", now=timezone.now())

    assert provider.request("GET", "Users").status_code == 401


@pytest.mark.parametrize("body", ["", "{", "[]", '{"userName": 7}', '{"userName": "a\\u0000b"}'])
def test_invalid_bodies_are_rejected(provider: Provider, body: str) -> None:
    response = Client().post(
        "/scim/v2/Users",
        body,
        content_type="application/scim+json",
        headers={"Authorization": f"Bearer {provider.bearer_token}"},
    )

    assert response.status_code == 400
