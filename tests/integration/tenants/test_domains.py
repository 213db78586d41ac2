"""Any tenant can claim an e-mail domain, but only one tenant can verify it."""

import secrets
from uuid import UUID

import pytest
from django.utils import timezone
from pytest_django import Settings

from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound
from tenants.base.permissions import Role
from tenants.identity.domains.dns_lookup import look_up_txt_records
from tenants.identity.domains.operations import (
    Resolve,
    claim_domain,
    release_domain,
    verify_domain,
)
from tenants.identity.domains.queries import (
    DomainView,
    find_domain,
    find_owning_tenant,
    list_domains,
)
from tests.fakes.dns_server import dns_server_in_thread
from tests.fixtures.companies import Cast, Company, make_company
from tests.fixtures.users import make_colleague, make_domain


@pytest.fixture
def company() -> Company:
    return make_company("initech", {Role.OWNER: "olga"})


@pytest.fixture
def name() -> str:
    return f"{secrets.token_hex(4)}.example"


def test_a_claimed_domain_is_not_owned_yet(company: Company, name: str) -> None:
    make_domain(company, name)

    assert find_owning_tenant(f"ada@{name}") is None


def test_a_verified_domain_belongs_to_its_tenant(company: Company, name: str) -> None:
    make_domain(company, name, verified=True)

    assert find_owning_tenant(f"Ada@{name.upper()}") == company.tenant_id
    assert find_owning_tenant(f"ada@sub.{name}") is None


def test_a_domain_without_its_txt_record_is_not_verified(company: Company, name: str) -> None:
    domain_id = make_domain(company, name)

    with pytest.raises(Conflict, match="TXT"):
        verify_domain(
            actor=company.platform,
            domain_id=UUID(domain_id),
            resolve=lambda _: ["caret-domain-verification=other", "v=spf1 -all"],
            now=timezone.now(),
        )

    assert find_owning_tenant(f"ada@{name}") is None


def test_each_claim_has_its_own_txt_record(company: Company, cast: Cast, name: str) -> None:
    our_domain = find_domain(actor=company.platform, domain_id=UUID(make_domain(company, name)))
    their_domain = find_domain(
        actor=cast.globex.platform, domain_id=UUID(make_domain(cast.globex, name))
    )

    with pytest.raises(Conflict):
        verify_domain(
            actor=cast.globex.platform,
            domain_id=their_domain.id,
            resolve=lambda _: [our_domain.txt_record],
            now=timezone.now(),
        )


def test_a_domain_can_be_verified_by_one_tenant_only(
    company: Company, cast: Cast, name: str
) -> None:
    make_domain(company, name, verified=True)

    with pytest.raises(Conflict, match="Another tenant"):
        make_domain(cast.globex, name, verified=True)

    assert find_owning_tenant(f"ada@{name}") == company.tenant_id


def test_a_released_domain_can_be_verified_by_another_tenant(
    company: Company, cast: Cast, name: str
) -> None:
    domain_id = make_domain(company, name, verified=True)

    release_domain(actor=company.platform, domain_id=UUID(domain_id), now=timezone.now())
    make_domain(cast.globex, name, verified=True)

    assert find_owning_tenant(f"ada@{name}") == cast.globex.tenant_id


def test_a_domain_released_during_the_dns_lookup_is_not_verified(
    company: Company, cast: Cast, name: str
) -> None:
    domain_id = UUID(make_domain(company, name))
    domain = find_domain(actor=company.platform, domain_id=domain_id)

    def release_and_resolve(_: str) -> list[str]:
        release_domain(actor=company.platform, domain_id=domain_id, now=timezone.now())
        return [domain.txt_record]

    with pytest.raises(NotFound):
        verify_domain(
            actor=company.platform,
            domain_id=domain_id,
            resolve=release_and_resolve,
            now=timezone.now(),
        )

    assert find_owning_tenant(f"ada@{name}") is None
    make_domain(cast.globex, name, verified=True)


def test_two_concurrent_verifications_of_a_domain_succeed(company: Company, name: str) -> None:
    domain_id = UUID(make_domain(company, name))
    domain = find_domain(actor=company.platform, domain_id=domain_id)

    def verify(resolve: Resolve) -> DomainView:
        return verify_domain(
            actor=company.platform, domain_id=domain_id, resolve=resolve, now=timezone.now()
        )

    def verify_and_resolve(_: str) -> list[str]:
        # During the look-up of the first verification, a second one begins and ends.
        verify(lambda _: [domain.txt_record])
        return [domain.txt_record]

    assert verify(verify_and_resolve).verified_at is not None
    assert find_owning_tenant(f"ada@{name}") == company.tenant_id


def test_releasing_a_claim_does_not_affect_the_owner(
    company: Company, cast: Cast, name: str
) -> None:
    make_domain(company, name, verified=True)
    claim_id = make_domain(cast.globex, name)

    release_domain(actor=cast.globex.platform, domain_id=UUID(claim_id), now=timezone.now())

    assert find_owning_tenant(f"ada@{name}") == company.tenant_id


@pytest.mark.parametrize(
    "text", ["", "com", "gmail.com", "GMail.com.", "a b.example", "x..y", "-a.example", "a" * 300]
)
def test_an_invalid_or_public_domain_is_refused(company: Company, text: str) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        claim_domain(actor=company.platform, name=text, now=timezone.now())

    assert exc_info.value.field == "name"


def test_an_administrator_cannot_claim_a_domain(company: Company, name: str) -> None:
    alice = make_colleague(company, Role.ADMINISTRATOR)

    with pytest.raises(Forbidden, match=r"sign_in_settings\.write"):
        claim_domain(actor=alice.actor, name=name, now=timezone.now())


def test_another_tenants_domain_is_not_found(company: Company, cast: Cast, name: str) -> None:
    domain_id = UUID(make_domain(company, name))

    with pytest.raises(NotFound):
        find_domain(actor=cast.globex.platform, domain_id=domain_id)
    with pytest.raises(NotFound):
        release_domain(actor=cast.globex.platform, domain_id=domain_id, now=timezone.now())

    assert name not in {row.name for row in list_domains(actor=cast.globex.platform)}


def test_txt_records_are_looked_up_at_the_configured_dns_server(
    name: str, settings: Settings
) -> None:
    with dns_server_in_thread() as server:
        server.texts[name] = "caret-verification=1"
        settings.DOMAIN_RESOLVER = ("127.0.0.1", server.port)

        assert look_up_txt_records(name) == ["caret-verification=1"]
        assert look_up_txt_records(f"other.{name}") == []
