"""SCIM users: joining, leaving, and isolation from another tenant's token."""

import secrets
from uuid import UUID

import pytest
from django.utils import timezone

from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.identity.api_keys.queries import KeyState, find_key
from tenants.identity.domains.operations import release_domain
from tenants.models import AlertDelivery, AuditEntry, Invitation, ScimUser, User
from tenants.security.authorization.directory import find_memberships, find_user
from tests.fakes.console_client import Client
from tests.fixtures.companies import Cast, Company, make_key
from tests.fixtures.users import make_colleague, make_domain, send_invitation
from tests.integration.scim.people import make_alert, provision, roles_by_email
from tests.integration.scim.provider import USER, Provider, make_provider

ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"


def test_a_provisioned_user_becomes_a_developer(
    company: Company, domain: str, provider: Provider
) -> None:
    provider.create_user(f"Ada@{domain}", displayName="Ada Lovelace")

    assert roles_by_email(company)[f"ada@{domain}"] is Role.DEVELOPER
    assert User.objects.get(email=f"ada@{domain}").name == "Ada Lovelace"
    assert not User.objects.get(email=f"ada@{domain}").has_usable_password()


@pytest.mark.parametrize("is_claimed", [False, True])
def test_a_user_of_an_unverified_domain_gets_neither_an_account_nor_a_membership(
    company: Company, provider: Provider, is_claimed: bool
) -> None:
    domain = f"{secrets.token_hex(4)}.example"
    if is_claimed:
        make_domain(company, domain)
    email = f"ada@{domain}"
    provider.create_user(email)

    assert email not in roles_by_email(company)
    assert find_user(email=email) is None


def test_another_tenants_user_is_neither_taken_over_nor_revealed(
    company: Company, cast: Cast, provider: Provider
) -> None:
    gus = cast.globex.developer

    foreign_user = provider.request("POST", "Users", {"schemas": [USER], "userName": gus.email})
    unknown_user = provider.request(
        "POST", "Users", {"schemas": [USER], "userName": "x" + gus.email}
    )

    assert foreign_user.status_code == unknown_user.status_code == 201
    assert foreign_user.json().keys() == unknown_user.json().keys()
    assert [row.slug for row in find_memberships(user_id=gus.user_id)] == [cast.globex.slug]


def test_verifying_a_domain_admits_users_provisioned_before(
    company: Company, provider: Provider
) -> None:
    name = f"{secrets.token_hex(4)}.example"
    provider.create_user(f"ada@{name}")

    make_domain(company, name, verified=True)

    assert f"ada@{name}" in roles_by_email(company)


@pytest.mark.parametrize(
    "operation",
    [
        # Entra ID, Okta, and the standard's form.
        {"op": "Replace", "path": "active", "value": "False"},
        {"op": "replace", "value": {"active": False}},
        {"op": "replace", "path": "active", "value": False},
    ],
)
def test_deactivation_ends_the_membership_and_the_keys(
    company: Company, domain: str, provider: Provider, operation: object
) -> None:
    scim_id, ada = provision(provider, company, f"ada@{domain}")
    key = make_key(company, ada).key

    response = provider.patch(f"Users/{scim_id}", operation)

    assert response.json()["active"] is False
    assert ada.email not in roles_by_email(company)
    found_key = find_key(actor=company.platform, lookup_id=key.lookup_id, now=timezone.now())
    assert found_key.state is KeyState.REVOKED


def test_a_deactivated_user_loses_access_to_the_tenant(
    company: Company, domain: str, provider: Provider
) -> None:
    scim_id, ada = provision(provider, company, f"ada@{domain}")
    browser = Client()
    browser.force_login(
        User.objects.get(id=ada.user_id), backend="django.contrib.auth.backends.ModelBackend"
    )
    before = browser.get("/api/v1/tenant").status_code

    provider.patch(f"Users/{scim_id}", {"op": "replace", "path": "active", "value": False})

    # `force_login` creates no UserSession, so the session remains, but opens no tenant.
    assert (before, browser.get("/api/v1/tenant").status_code) == (200, 403)


def test_a_reactivated_user_is_a_member_again(
    company: Company, domain: str, provider: Provider
) -> None:
    scim_id, ada = provision(provider, company, f"ada@{domain}")
    provider.patch(f"Users/{scim_id}", {"op": "replace", "path": "active", "value": False})

    provider.patch(f"Users/{scim_id}", {"op": "Replace", "path": "active", "value": "True"})

    assert roles_by_email(company)[ada.email] is Role.DEVELOPER


def test_deleting_ends_the_membership_and_the_record(
    company: Company, domain: str, provider: Provider
) -> None:
    scim_id, ada = provision(provider, company, f"ada@{domain}")

    response = provider.request("DELETE", f"Users/{scim_id}")

    assert response.status_code == 204
    assert ada.email not in roles_by_email(company)
    assert provider.request("GET", f"Users/{scim_id}").status_code == 404


def test_the_last_owner_cannot_be_deactivated(company: Company, provider: Provider) -> None:
    owner = company.people[Role.OWNER]
    make_domain(company, owner.email.partition("@")[2], verified=True)
    scim_id = provider.create_user(owner.email)["id"]

    response = provider.patch(
        f"Users/{scim_id}", {"op": "replace", "path": "active", "value": False}
    )

    assert response.status_code == 409
    assert roles_by_email(company)[owner.email] is Role.OWNER
    assert provider.request("GET", f"Users/{scim_id}").json()["active"] is True


def test_provisioning_an_existing_member_keeps_their_role(
    company: Company, provider: Provider
) -> None:
    alice = make_colleague(company, Role.ADMINISTRATOR)
    make_domain(company, f"{company.slug}.example", verified=True)

    provider.create_user(alice.email)

    assert roles_by_email(company)[alice.email] is Role.ADMINISTRATOR


@pytest.mark.parametrize(
    ("query", "num_found"),
    [
        ('userName eq "ADA@{d}"', 1),
        ('userName eq "ada@{d}"', 1),
        ('externalId eq "ext-1"', 1),
        ('externalId eq "ext-2"', 0),
        ('userName sw "ada" and active eq true', 1),
        ('emails[type eq "work"].value eq "ada@{d}"', 1),
        ('id eq "nonsense"', 0),
    ],
)
def test_filters_of_common_identity_providers_work(
    domain: str, provider: Provider, query: str, num_found: int
) -> None:
    provider.create_user(
        f"ada@{domain}",
        externalId="ext-1",
        emails=[{"value": f"ada@{domain}", "type": "work", "primary": True}],
    )
    provider.create_user(f"bob@{domain}")

    response = provider.request(
        "GET", f"Users?filter={query.replace('{d}', domain)}".replace(" ", "%20")
    )

    assert response.status_code == 200, response.content
    assert response.json()["totalResults"] == num_found


def test_an_invalid_filter_is_refused(provider: Provider) -> None:
    response = provider.request("GET", "Users?filter=userName%20is%20ada")

    assert response.status_code == 400
    assert response.json()["scimType"] == "invalidFilter"


def test_users_are_paginated(domain: str, provider: Provider) -> None:
    for name in ("a", "b", "c"):
        provider.create_user(f"{name}@{domain}")

    page = provider.request("GET", "Users?startIndex=2&count=1").json()

    assert (page["totalResults"], page["startIndex"], page["itemsPerPage"]) == (3, 2, 1)
    assert page["Resources"][0]["userName"] == f"b@{domain}"


def test_a_duplicate_user_name_is_a_conflict(domain: str, provider: Provider) -> None:
    provider.create_user(f"ada@{domain}")

    second_response = provider.request(
        "POST", "Users", {"schemas": [USER], "userName": f"ADA@{domain}"}
    )

    assert (second_response.status_code, second_response.json()["scimType"]) == (409, "uniqueness")


def test_a_duplicate_email_address_is_a_conflict(domain: str, provider: Provider) -> None:
    provider.create_user(f"ada@{domain}")
    body = {"schemas": [USER], "userName": "ada", "emails": [{"value": f"ada@{domain}"}]}

    assert provider.request("POST", "Users", body).status_code == 409


def test_a_patch_as_sent_by_entra_id_is_accepted(domain: str, provider: Provider) -> None:
    scim_id = provider.create_user(f"ada@{domain}")["id"]

    response = provider.patch(
        f"Users/{scim_id}",
        {"op": "Add", "path": "name.givenName", "value": "Ada"},
        {"op": "Replace", "path": 'emails[type eq "work"].value', "value": f"ada@{domain}"},
        {"op": "Add", "path": f"{ENTERPRISE}:department", "value": "R&D"},
    )

    assert response.status_code == 200, response.content
    assert response.json()["name"] == {"givenName": "Ada"}
    assert response.json()["emails"][0]["value"] == f"ada@{domain}"


def test_unneeded_attributes_are_not_stored(
    company: Company, domain: str, provider: Provider
) -> None:
    secret_text = secrets.token_hex(8)
    provider.create_user(
        f"ada@{domain}",
        password=secret_text,
        phoneNumbers=[{"value": secret_text}],
        nickName=secret_text,
    )

    with tenant_scope(company.tenant_id):
        assert secret_text not in str(vars(ScimUser.objects.get()))
        assert not any(secret_text in str(vars(entry)) for entry in AuditEntry.objects.all())


def test_an_address_can_change_only_within_verified_domains(
    company: Company, domain: str, provider: Provider
) -> None:
    scim_id, ada = provision(provider, company, f"ada@{domain}")

    moved = provider.patch(
        f"Users/{scim_id}", {"op": "replace", "path": "userName", "value": f"ada.l@{domain}"}
    )
    stolen = provider.patch(
        f"Users/{scim_id}", {"op": "replace", "path": "userName", "value": "ceo@victim.example"}
    )

    assert (moved.status_code, stolen.status_code) == (200, 400)
    assert User.objects.get(id=ada.user_id).email == f"ada.l@{domain}"


def test_an_address_of_a_released_domain_cannot_be_changed(
    company: Company, domain: str, provider: Provider
) -> None:
    name = f"{secrets.token_hex(4)}.example"
    domain_id = make_domain(company, name, verified=True)
    scim_id, ada = provision(provider, company, f"ada@{name}")
    release_domain(actor=company.platform, domain_id=UUID(domain_id), now=timezone.now())

    moved = provider.patch(
        f"Users/{scim_id}", {"op": "replace", "path": "userName", "value": f"ada@{domain}"}
    )

    assert moved.status_code == 400
    assert User.objects.get(id=ada.user_id).email == f"ada@{name}"


def test_a_changed_address_replaces_the_former_one_in_invitations_and_alerts(
    company: Company, domain: str, provider: Provider
) -> None:
    old, new = f"ada@{domain}", f"ada.l@{domain}"
    send_invitation(company, old)
    scim_id, _ = provision(provider, company, old)
    make_alert(company, old)
    make_alert(company, old, new)

    provider.patch(f"Users/{scim_id}", {"op": "replace", "path": "userName", "value": new})

    with tenant_scope(company.tenant_id):
        invitation = Invitation.objects.get(email=new)
        mails = list(AlertDelivery.objects.filter(address=new))
        assert not Invitation.objects.filter(email=old).exists()
        assert not AlertDelivery.objects.filter(address=old).exists()
    assert invitation.revoked_at is not None  # it was revoked when the user was provisioned
    assert len(mails) == 2  # one for each alert; the second alert already had the new address


def test_an_address_of_another_user_is_refused(
    company: Company, domain: str, provider: Provider
) -> None:
    scim_id, _ = provision(provider, company, f"ada@{domain}")
    other_user = User.objects.create(email=f"bob@{domain}", name="", created_at=timezone.now())

    response = provider.patch(
        f"Users/{scim_id}", {"op": "replace", "path": "userName", "value": other_user.email}
    )

    assert response.status_code == 409


def test_a_change_with_a_stale_etag_is_refused(domain: str, provider: Provider) -> None:
    user = provider.create_user(f"ada@{domain}")
    path, old = f"Users/{user['id']}", user["meta"]["version"]
    rename = {"op": "replace", "path": "displayName", "value": "Ada"}
    first = provider.patch(path, rename, **{"If-Match": old})

    second = provider.patch(path, rename | {"value": "Eve"}, **{"If-Match": old})

    assert (first.status_code, second.status_code) == (200, 412)
    assert provider.request("GET", path).json()["displayName"] == "Ada"


def test_an_unchanged_resource_is_not_sent_again(domain: str, provider: Provider) -> None:
    user = provider.create_user(f"ada@{domain}")

    response = provider.request(
        "GET", f"Users/{user['id']}", **{"If-None-Match": user["meta"]["version"]}
    )

    assert (response.status_code, response.content) == (304, b"")


def test_each_change_is_audited_as_made_through_scim(
    company: Company, domain: str, provider: Provider
) -> None:
    scim_id, ada = provision(provider, company, f"ada@{domain}")
    provider.patch(f"Users/{scim_id}", {"op": "replace", "path": "active", "value": False})

    targets = [f"scim_user:{scim_id}", f"user:{ada.user_id}"]
    with tenant_scope(company.tenant_id):
        entries = list(AuditEntry.objects.filter(target__in=targets).order_by("sequence"))
    actions = [entry.action for entry in entries]
    assert actions[:2] == ["member.added", "scim_user.created"]
    assert actions[2:] == ["member.removed", "scim_user.changed"]
    assert {entry.actor_key.partition(":")[0] for entry in entries} == {"scim"}


def test_a_change_without_effect_is_not_audited(
    company: Company, domain: str, provider: Provider
) -> None:
    scim_id = provider.create_user(f"ada@{domain}")["id"]

    provider.patch(f"Users/{scim_id}", {"op": "replace", "path": "active", "value": True})

    with tenant_scope(company.tenant_id):
        assert AuditEntry.objects.filter(target=f"scim_user:{scim_id}").count() == 1


def test_another_tenants_token_finds_no_users(
    company: Company, domain: str, provider: Provider, cast: Cast
) -> None:
    user = provider.create_user(f"ada@{domain}")
    other_provider = make_provider(cast.globex)
    path = f"Users/{user['id']}"

    responses = [
        other_provider.request("GET", path),
        other_provider.request("PUT", path, {"schemas": [USER], "userName": "x"}),
        other_provider.patch(path, {"op": "replace", "path": "active", "value": False}),
        other_provider.request("DELETE", path),
    ]

    user_list = other_provider.request("GET", f"Users?filter=userName%20eq%20%22ada@{domain}%22")
    assert [response.status_code for response in responses] == [404] * 4
    assert user_list.json()["totalResults"] == 0
    assert provider.request("GET", path).json()["active"] is True


def test_a_provisioned_member_stays_after_the_domain_is_released(
    company: Company, provider: Provider
) -> None:
    name = f"{secrets.token_hex(4)}.example"
    domain_id = make_domain(company, name, verified=True)
    _, ada = provision(provider, company, f"ada@{name}")

    release_domain(actor=company.platform, domain_id=UUID(domain_id), now=timezone.now())

    assert ada.email in roles_by_email(company)
    assert UserId(ada.user_id) == find_user(email=ada.email)
