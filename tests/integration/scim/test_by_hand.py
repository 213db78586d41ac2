"""Manual changes to provisioned users: the last change wins."""

import secrets

from django.utils import timezone

from tenants.base.permissions import Role
from tenants.identity.invitations.operations import InvitationBearer, accept_invitation
from tenants.identity.member_lifecycle import remove_member
from tests.fixtures.companies import Cast, Company, Person
from tests.fixtures.users import Mailbox, make_colleague, make_domain, send_invitation
from tests.integration.scim.people import members, provisioned
from tests.integration.scim.provider import USER, Provider, provider_of


def removed(company: Company, domain: str, provider: Provider) -> tuple[str, Person]:
    """Return a member that an owner has removed manually."""
    scim_id, ada = provisioned(provider, company, f"ada@{domain}")
    remove_member(
        actor=company.people[Role.OWNER].actor, user_id=ada.user_id, reason="", now=timezone.now()
    )
    return scim_id, ada


def test_who_is_removed_by_hand_is_told_of_as_inactive(
    company: Company, domain: str, provider: Provider
) -> None:
    scim_id, _ = removed(company, domain, provider)

    assert provider.ask("GET", f"Users/{scim_id}").json()["active"] is False


def test_nothing_but_that_he_is_active_lets_him_in_again(
    company: Company, domain: str, provider: Provider
) -> None:
    scim_id, ada = removed(company, domain, provider)

    provider.patch(f"Users/{scim_id}", {"op": "replace", "path": "displayName", "value": "Ada L"})
    provider.patch(f"Users/{scim_id}", {"op": "remove", "path": "active"})
    provider.ask("PUT", f"Users/{scim_id}", {"schemas": [USER], "userName": ada.email})
    provider.make_group("Platform", scim_id)
    make_domain(company, f"{secrets.token_hex(4)}.example", verified=True)

    assert ada.email not in members(company)


def test_that_he_is_active_does(company: Company, domain: str, provider: Provider) -> None:
    scim_id, ada = removed(company, domain, provider)

    provider.patch(f"Users/{scim_id}", {"op": "replace", "path": "active", "value": True})

    assert members(company)[ada.email] is Role.DEVELOPER


def test_who_was_told_of_before_his_domain_was_verified_stays_away_as_well(
    company: Company, provider: Provider
) -> None:
    colleague = make_colleague(company)
    provider.make(colleague.email)
    remove_member(actor=company.platform, user_id=colleague.user_id, reason="", now=timezone.now())

    make_domain(company, f"{company.slug}.example", verified=True)

    assert colleague.email not in members(company)


def test_who_is_invited_again_is_not_thrown_out_by_the_next_change(
    company: Company, domain: str, provider: Provider
) -> None:
    scim_id, ada = provisioned(provider, company, f"ada@{domain}")
    provider.patch(f"Users/{scim_id}", {"op": "replace", "path": "active", "value": False})
    mailbox = Mailbox()
    send_invitation(company, ada.email, mailbox=mailbox)
    accept_invitation(
        guest=InvitationBearer(ada.user_id, None, ""), text=mailbox.last, now=timezone.now()
    )

    provider.make_group("Platform", scim_id)

    assert ada.email in members(company)
    assert provider.ask("GET", f"Users/{scim_id}").json()["active"] is True


def test_the_neighbours_record_of_the_same_person_stays_as_it_is(
    company: Company, domain: str, provider: Provider, cast: Cast
) -> None:
    scim_id, ada = provisioned(provider, company, f"ada@{domain}")
    neighbour = provider_of(cast.globex)
    foreign_id = neighbour.make(ada.email)["id"]

    remove_member(actor=company.platform, user_id=ada.user_id, reason="", now=timezone.now())

    assert provider.ask("GET", f"Users/{scim_id}").json()["active"] is False
    assert neighbour.ask("GET", f"Users/{foreign_id}").json()["active"] is True
