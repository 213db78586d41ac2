"""The console's pages: required sign-in, the choice of a tenant, and security headers."""

import re
import secrets

import pytest
from django.test import Client
from django.utils import timezone

from tenants.base.permissions import Role
from tenants.identity.members.operations import add_member, create_tenant
from tenants.models import User
from tenants.security.authorization.actor import build_system_actor
from tests.fixtures.companies import GLOBEX_PEOPLE, Cast, Company, make_company
from tests.integration.console.conftest import SignIn

# No inline scripts, styles or event handlers, and no URLs of other hosts. A script is a static
# file, or JSON data.
_NOT_ALLOWED = (
    r"<script(?! src=\"/assets/|[^>]* type=\"application/json\")|<style| style=| on\w+="
    r"|https?://(?!127\.0\.0\.1)"
)
PAGES = ["/", "/keys/new", "/sign-in", "/nothing"]  # the last one does not exist


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX_PEOPLE)


@pytest.mark.parametrize("path", ["/", "/keys/new", "/keys/Ab3dE6gH/revoke"])
def test_anonymous_visitors_are_redirected_to_sign_in(path: str) -> None:
    response = Client().get(path)

    assert response.status_code == 302
    assert response["Location"] == f"/sign-in?next={path}"


def test_the_overview_shows_a_curl_command_for_the_gateway(cast: Cast, sign_in: SignIn) -> None:
    page = sign_in(cast.acme.developer).get("/").content.decode()

    assert "curl http://127.0.0.1:8401/v1/completions" in page


@pytest.fixture
def second_company(company: Company) -> Company:
    """Make a second company in which the first one's administrator is an auditor."""
    now, slug = timezone.now(), f"hooli-{secrets.token_hex(4)}"
    tenant_id = create_tenant(slug=slug, name="Hooli", now=now)
    add_member(
        actor=build_system_actor(tenant_id),
        user_id=company.administrator.user_id,
        role=Role.AUDITOR,
        now=now,
    )
    return Company(tenant_id=tenant_id, slug=slug, name="Hooli", people={})


def test_a_user_of_two_tenants_switches_between_them(
    company: Company, second_company: Company, sign_in: SignIn
) -> None:
    client = sign_in(company.administrator)

    client.post("/tenant", {"tenant": company.tenant_id})
    first = client.get("/").content.decode()
    client.post("/tenant", {"tenant": second_company.tenant_id})
    second = client.get("/").content.decode()

    assert "<h1>Initech</h1>" in first
    assert "<h1>Hooli</h1>" in second


# None stands for the ID of acme, a tenant that exists.
@pytest.mark.parametrize("tenant_id", ["", "x", "00000000-0000-0000-0000-000000000000", None])
def test_a_user_cannot_switch_to_a_tenant_without_membership(
    company: Company, cast: Cast, sign_in: SignIn, tenant_id: str | None
) -> None:
    client = sign_in(company.administrator)

    response = client.post(
        "/tenant", {"tenant": cast.acme.tenant_id if tenant_id is None else tenant_id}
    )

    assert response.status_code == 404
    assert "<h1>Initech</h1>" in client.get("/").content.decode()


def test_deactivating_a_user_ends_their_session_immediately(
    company: Company, sign_in: SignIn
) -> None:
    client = sign_in(company.developer)
    assert client.get("/").status_code == 200

    User.objects.filter(id=company.developer.user_id).update(is_active=False)

    assert client.get("/").status_code == 302


@pytest.mark.parametrize("path", PAGES)
def test_pages_have_no_inline_scripts_and_no_external_resources(
    cast: Cast, sign_in: SignIn, path: str
) -> None:
    response = sign_in(cast.acme.administrator).get(path, follow=True)

    page, policy = response.content.decode(), response["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert re.search(_NOT_ALLOWED, page) is None
    assert response["X-Frame-Options"] == "DENY"
    assert response["Cache-Control"] == "no-store"


def test_the_health_check_needs_no_sign_in() -> None:
    assert Client().get("/healthz").content == b"ok\n"
