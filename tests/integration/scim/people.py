"""Who is a member, and who came by SCIM."""

from tenants.base.permissions import Role
from tenants.identity.members.queries import find_user, list_members
from tests.fixtures.companies import Company, Person
from tests.integration.scim.provider import Provider


def members(company: Company) -> dict[str, Role]:
    return {row.email: row.role for row in list_members(tenant_id=company.tenant_id)}


def provisioned(provider: Provider, company: Company, email: str) -> tuple[str, Person]:
    made = provider.make(email)
    user_id = find_user(email=email)
    assert user_id is not None
    return made["id"], Person(user_id, email, company.platform)
