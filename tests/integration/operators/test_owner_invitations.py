"""Operators invite owners on a tenant's page."""

import re
import secrets

import pytest
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.operator_roles import OperatorRole
from tenants.identity.invitations.operations import find_open_invitation
from tenants.identity.tenant_lifecycle import invite_owner
from tenants.models import AuditEntry
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company
from tests.integration.operators.browsers import signed_in, with_recent_step_up


@pytest.fixture
def acme() -> Company:
    return make_company("acme", ACME_PEOPLE)


def list_invitation_entries(company: Company) -> list[AuditEntry]:
    with tenant_scope(company.tenant_id):
        entries = AuditEntry.objects.filter(action="invitation.created")
        return list(entries.order_by("sequence"))


def test_an_operator_invites_a_further_owner_and_sees_the_link_once(acme: Company) -> None:
    browser, email = with_recent_step_up(), f"{secrets.token_hex(4)}@elsewhere.example"
    browser.open_tenant(acme)  # states the reason, which an invitation requires
    earlier_invitation = invite_owner(actor=acme.platform, email=f"x{email}", now=timezone.now())

    page = browser.invite_owner(acme, email)

    assert page.status_code == 201
    link = re.search(r"/invitation/(\S+?)<", page.content.decode())
    assert link is not None
    # Both are open: in a tenant with an owner, an invitation does not replace an earlier one.
    for token in (link[1], earlier_invitation.url.rpartition("/")[2]):
        assert find_open_invitation(text=token, now=timezone.now()).tenant_id == acme.tenant_id
    assert link[1].encode() not in browser.page(acme).content
    entry = list_invitation_entries(acme)[-1]
    assert (entry.actor_kind, entry.after) == ("operator", {"role": "owner"})


def test_inviting_an_owner_requires_a_reason_a_code_an_address_and_a_role(acme: Company) -> None:
    browser = signed_in()
    num_before = len(list_invitation_entries(acme))

    without_reason = browser.invite_owner(acme, "eve@elsewhere.example")
    browser.open_tenant(acme)  # states the reason
    without_code = browser.invite_owner(acme, "eve@elsewhere.example")
    browser.step_up()
    without_address = browser.invite_owner(acme, "eve")
    support = with_recent_step_up(signed_in(OperatorRole.SUPPORT))
    support.open_tenant(acme)
    without_role = support.invite_owner(acme, "eve@elsewhere.example")

    assert "Why do you need to see this tenant?" in without_reason.content.decode()
    assert (without_code.status_code, without_address.status_code) == (400, 400)
    assert "This is not a valid e-mail address." in without_address.content.decode()
    assert without_role.status_code == 403
    assert len(list_invitation_entries(acme)) == num_before
