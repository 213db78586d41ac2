"""Updates the SCIM resources of users when their memberships change (ADR 0063).

The identity provider can therefore see manual changes. Its next update replaces them.
"""

import uuid
from datetime import datetime

from django.db.models import Q

from caret.foundation.ids import TenantId, UserId
from tenants.models import ScimUser, User


def sync_scim_active(*, tenant_id: TenantId, user_id: UserId, active: bool, now: datetime) -> None:
    """Set `active` on a user's SCIM resources. Must run inside the tenant's scope.

    This includes resources that have the user's e-mail address, but are not bound to the account
    yet. They are bound when the tenant verifies the domain of the address.
    """
    email = User.objects.values_list("email", flat=True).get(id=uuid.UUID(user_id))
    is_of_user = Q(user_id=uuid.UUID(user_id)) | Q(user_id=None, email=email)
    rows = ScimUser.objects.filter(is_of_user, tenant_id=tenant_id).exclude(active=active)
    for row in rows.order_by("id"):
        row.active, row.changed_at = active, now
        row.document = {**row.document, "active": active}
        row.save(update_fields=["active", "changed_at", "document"])
