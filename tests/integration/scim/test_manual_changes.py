"""Manual changes to users that SCIM has provisioned: the last change wins."""

import secrets

from django.utils import timezone

from tenants.base.permissions import Role
from tenants.identity.invitations.operations import InvitationBearer, accept_invitation
from tenants.identity.member_lifecycle import remove_member
from tests.fixtures.companies import Cast, Company, Person
from tests.fixtures.users import Mailbox, make_colleague, make_domain, send_invitation
from tests.integration.scim.people import provision, roles_by_email
from tests.integration.scim.provider import USER, Provider, make_provider


def make_removed_member(company: Company, domain: str, provider: Provider) -> tuple[str, Person]:
    """Provision a member, and remove them as the owner. Return the SCIM ID and the person."""
    scim_id, ada = provision(provider, company, f"ada@{domain}")
    remove_member(
        actor=company.people[Role.OWNER].actor, user_id=ada.user_id, reason="", now=timezone.now()
    )
    return scim_id, ada


def test_a_manually_removed_member_is_reported_as_inactive(
    company: Company, domain: str, provider: Provider
) -> None:
    scim_id, _ = make_removed_member(company, domain, provider)

    assert provider.request("GET", f"Users/{scim_id}").json()["active"] is False


def test_changes_other_than_an_activation_do_not_restore_a_removed_member(
    company: Company, domain: str, provider: Provider
) -> None:
    scim_id, ada = make_removed_member(company, domain, provider)

    provider.patch(f"Users/{scim_id}", {"op": "replace", "path": "displayName", "value": "Ada L"})
    provider.patch(f"Users/{scim_id}", {"op": "remove", "path": "active"})
    provider.request("PUT", f"Users/{scim_id}", {"schemas": [USER], "userName": ada.email})
    provider.create_group("Platform", scim_id)
    make_domain(company, f"{secrets.token_hex(4)}.example", verified=True)

    assert ada.email not in roles_by_email(company)


def test_an_activation_restores_a_removed_member(
    company: Company, domain: str, provider: Provider
) -> None:
    scim_id, ada = make_removed_member(company, domain, provider)

    provider.patch(f"Users/{scim_id}", {"op": "replace", "path": "active", "value": True})

    assert roles_by_email(company)[ada.email] is Role.DEVELOPER


def test_verifying_a_domain_does_not_restore_a_removed_member(
    company: Company, provider: Provider
) -> None:
    colleague = make_colleague(company)
    provider.create_user(colleague.email)
    remove_member(actor=company.platform, user_id=colleague.user_id, reason="", now=timezone.now())

    make_domain(company, f"{company.slug}.example", verified=True)

    assert colleague.email not in roles_by_email(company)


def test_a_member_invited_again_stays_after_the_next_scim_change(
    company: Company, domain: str, provider: Provider
) -> None:
    scim_id, ada = provision(provider, company, f"ada@{domain}")
    provider.patch(f"Users/{scim_id}", {"op": "replace", "path": "active", "value": False})
    mailbox = Mailbox()
    send_invitation(company, ada.email, mailbox=mailbox)
    bearer = InvitationBearer(ada.user_id, address=None, request_id="")
    accept_invitation(bearer=bearer, text=mailbox.last_token, now=timezone.now())

    provider.create_group("Platform", scim_id)

    assert ada.email in roles_by_email(company)
    assert provider.request("GET", f"Users/{scim_id}").json()["active"] is True


def test_another_tenants_record_of_the_same_user_stays_active(
    company: Company, domain: str, provider: Provider, cast: Cast
) -> None:
    scim_id, ada = provision(provider, company, f"ada@{domain}")
    other_provider = make_provider(cast.globex)
    foreign_id = other_provider.create_user(ada.email)["id"]

    remove_member(actor=company.platform, user_id=ada.user_id, reason="", now=timezone.now())

    assert provider.request("GET", f"Users/{scim_id}").json()["active"] is False
    assert other_provider.request("GET", f"Users/{foreign_id}").json()["active"] is True
