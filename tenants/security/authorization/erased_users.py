"""Who of those that rows still name was erased here: nothing of him is shown any more, though his
account may live on in other tenants."""

from collections.abc import Iterable
from uuid import UUID

from caret.foundation.ids import TenantId
from tenants.models import Membership, User


def find_erased_users(tenant_id: TenantId, user_ids: Iterable[UUID | None]) -> frozenset[UUID]:
    """Inside the tenant's scope. One query; none, where nobody is named."""
    named = {user_id for user_id in user_ids if user_id is not None}
    if not named:
        return frozenset()
    rows = Membership.objects.filter(
        tenant_id=tenant_id, user_id__in=named, erased_at__isnull=False
    )
    return frozenset(rows.values_list("user_id", flat=True))


def visible_email(person: User | None, erased: frozenset[UUID]) -> str | None:
    """None: nobody, or somebody who was erased."""
    return None if person is None or person.id in erased else person.email
