"""Erased users: rows still contain their IDs, but their data was erased in this tenant.

Their names and e-mail addresses are no longer shown, although their accounts may exist in other
tenants.
"""

from collections.abc import Iterable
from uuid import UUID

from caret.foundation.ids import TenantId
from tenants.models import Membership, User


def find_erased_users(tenant_id: TenantId, user_ids: Iterable[UUID | None]) -> frozenset[UUID]:
    """Return the IDs of those users that were erased in this tenant.

    Must run inside the tenant's scope. One query; no query without user IDs.
    """
    known_ids = {user_id for user_id in user_ids if user_id is not None}
    if not known_ids:
        return frozenset()
    rows = Membership.objects.filter(
        tenant_id=tenant_id, user_id__in=known_ids, erased_at__isnull=False
    )
    return frozenset(rows.values_list("user_id", flat=True))


def get_visible_email(person: User | None, erased_ids: frozenset[UUID]) -> str | None:
    """Return the user's e-mail address; None: `person` is None, or was erased."""
    return None if person is None or person.id in erased_ids else person.email
