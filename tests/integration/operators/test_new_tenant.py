"""The operators' form that creates a tenant."""

import re
import secrets
from typing import Any

import pytest
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.operator_roles import OperatorRole
from tenants.identity.invitations.operations import find_open_invitation
from tenants.models import AuditEntry, Tenant
from tenants.security.authorization.directory import find_tenant
from tests.integration.operators.browsers import (
    make_account,
    new_browser,
    signed_in,
    with_recent_step_up,
)


@pytest.fixture
def form() -> dict[str, str]:
    slug = f"initech-{secrets.token_hex(4)}"
    return {"slug": slug, "name": "Initech", "owner_email": f"olga@{slug}.example"}


def submit(browser: Any, form: dict[str, str]) -> Any:
    return browser.client.post("/operators/tenants/new", form)


def test_an_operator_creates_a_tenant_and_sees_the_invitation_link(form: dict[str, str]) -> None:
    browser = with_recent_step_up()

    response = submit(browser, form)

    assert response.status_code == 201
    token = re.search(r"/invitation/(civ_[\w=-]+)", response.content.decode())
    assert token is not None
    open_invitation = find_open_invitation(text=token[1], now=timezone.now())
    assert (open_invitation.email, open_invitation.tenant_name) == (form["owner_email"], "Initech")
    with tenant_scope(open_invitation.tenant_id):
        entry = AuditEntry.objects.get(action="tenant.created")
    assert entry.actor_key.startswith("operator:ola")
    assert form["slug"] in browser.client.get("/operators/tenants").content.decode()


def test_the_form_asks_for_a_code_and_keeps_what_was_entered(form: dict[str, str]) -> None:
    account, browser = make_account(), new_browser()
    browser.sign_in(account.form())

    without_code = submit(browser, form)
    tenant_without_code = find_tenant(slug=form["slug"])
    with_code = submit(browser, form | {"code": account.code(later_by=1)})

    assert without_code.status_code == 400
    assert 'name="code"' in without_code.content.decode()
    assert form["owner_email"] in without_code.content.decode()
    assert tenant_without_code is None
    assert with_code.status_code == 201
    assert find_tenant(slug=form["slug"]) is not None


def test_an_invalid_field_is_marked_and_creates_nothing(form: dict[str, str]) -> None:
    response = submit(with_recent_step_up(), form | {"slug": "Initech"})

    assert response.status_code == 400
    assert "Enter 1 to 63 lower-case letters" in response.content.decode()
    assert 'aria-describedby="wrong-slug"' in response.content.decode()
    assert not Tenant.objects.filter(slug="Initech").exists()


def test_a_taken_slug_is_reported(form: dict[str, str]) -> None:
    browser = with_recent_step_up()
    submit(browser, form)

    response = submit(browser, form)

    assert response.status_code == 409
    assert "already exists" in response.content.decode()


def test_the_support_role_gets_no_link_and_is_refused(form: dict[str, str]) -> None:
    browser = with_recent_step_up(signed_in(OperatorRole.SUPPORT))

    assert "tenants/new" not in browser.client.get("/operators/tenants").content.decode()
    assert browser.client.get("/operators/tenants/new").status_code == 403
    assert submit(browser, form).status_code == 403
    assert find_tenant(slug=form["slug"]) is None


def test_creating_a_tenant_requires_signing_in(form: dict[str, str]) -> None:
    response = submit(new_browser(), form)

    assert response.status_code == 302
    assert find_tenant(slug=form["slug"]) is None
