from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.fixtures.companies import Company
    from tests.integration.scim.provider import Provider


@pytest.fixture(autouse=True)
def _database(database: None) -> None:
    """Give all tests of this folder Postgres and Valkey."""


@pytest.fixture
def company() -> Company:
    # Imported here: pytest may load this file before Django is set up.
    from tenants.base.permissions import Role
    from tests.fixtures.companies import make_company

    return make_company("initech", {Role.OWNER: "olga"})


@pytest.fixture
def domain(company: Company) -> str:
    """Return a verified domain of the company."""
    from tests.fixtures.users import make_domain

    name = f"{secrets.token_hex(4)}.example"
    make_domain(company, name, verified=True)
    return name


@pytest.fixture
def provider(company: Company) -> Provider:
    from tests.integration.scim.provider import make_provider

    return make_provider(company)
