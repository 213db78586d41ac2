"""Members, users provisioned by SCIM, and budget alerts that were emailed to them."""

from uuid import uuid4

from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.models import AlertDelivery, BudgetAlert
from tenants.security.authorization.directory import find_user, list_members
from tests.fixtures.companies import Company, Person
from tests.integration.scim.provider import Provider


def roles_by_email(company: Company) -> dict[str, Role]:
    return {row.email: row.role for row in list_members(tenant_id=company.tenant_id)}


def provision(provider: Provider, company: Company, email: str) -> tuple[str, Person]:
    """Create a user through SCIM, and return their SCIM ID and the person.

    The person's actor is the platform, because no test acts as this user.
    """
    user = provider.create_user(email)
    user_id = find_user(email=email)
    assert user_id is not None
    return user["id"], Person(user_id, email, company.platform)


def make_alert(company: Company, *addresses: str) -> None:
    """Create an alert of a budget, emailed to these addresses."""
    now, tenant_id = timezone.now(), company.tenant_id
    with tenant_scope(tenant_id):
        alert = BudgetAlert.objects.create(
            tenant_id=tenant_id,
            budget_id=uuid4(),
            month=now.date().replace(day=1),
            percent=50,
            spent_micros=3,
            limit_micros=5,
            created_at=now,
        )
        for address in addresses:
            AlertDelivery.objects.create(
                tenant_id=tenant_id,
                alert_id=alert.id,
                channel="mail",
                address=address,
                last_error="",
            )
