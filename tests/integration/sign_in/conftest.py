"""Companies whose users sign in: `company` has an identity provider, and `companies` have none."""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING

import pytest
from django.test import override_settings

from tests.integration.sign_in.openid_provider import OpenIdProvider, running_provider

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fixtures.companies import Company, Person


@pytest.fixture(autouse=True)
def _database(database: None) -> None:
    """Give all tests of this folder Postgres and Valkey."""


@pytest.fixture(autouse=True)
def _allow_loopback() -> Iterator[None]:
    """Let identity providers be on this machine: Caret refuses private addresses by default."""
    with override_settings(PRIVATE_TARGETS=[ip_network("127.0.0.0/8")]):
        yield


@pytest.fixture(scope="session")
def server() -> Iterator[OpenIdProvider]:
    with running_provider() as provider:
        yield provider


@pytest.fixture
def provider(server: OpenIdProvider) -> OpenIdProvider:
    """Return the provider without the settings of earlier tests."""
    server.claims, server.signing_key, server.raw, server.extra_fields = {}, None, {}, {}
    server.sign, server.keys = None, None
    return server


@pytest.fixture
def company(provider: OpenIdProvider) -> Company:
    """Make a company with a verified domain and the test's identity provider."""
    # Imported here: pytest may load this file before Django is set up.
    from tenants.base.permissions import Role
    from tests.fixtures.companies import make_company
    from tests.fixtures.users import make_domain
    from tests.integration.sign_in.by_provider import configure_provider

    initech = make_company("initech", {Role.OWNER: "olga"})
    make_domain(initech, f"{initech.slug}.example", verified=True)
    configure_provider(initech, provider)
    return initech


@pytest.fixture
def owner(company: Company) -> Person:
    from tenants.base.permissions import Role

    return company.people[Role.OWNER]


@pytest.fixture
def companies() -> list[Company]:
    """Make two companies: olga is an owner of the first and a developer of the second."""
    from django.utils import timezone

    from caret.foundation.postgres.tenant_scope import tenant_scope
    from tenants.base.permissions import Role
    from tenants.identity.members.operations import insert_membership
    from tests.fixtures.companies import make_company

    home, other_company = make_company("initech", {Role.OWNER: "olga"}), make_company("hooli", {})
    with tenant_scope(other_company.tenant_id):
        insert_membership(
            tenant_id=other_company.tenant_id,
            user_id=home.people[Role.OWNER].user_id,
            role=Role.DEVELOPER,
            now=timezone.now(),
        )
    return [home, other_company]


@pytest.fixture
def olga(companies: list[Company]) -> Person:
    from tenants.base.permissions import Role

    return companies[0].people[Role.OWNER]
