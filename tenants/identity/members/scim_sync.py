"""Keeps what SCIM answers of a person to what he is to the tenant (ADR 0063).

An identity provider thus sees what people have done by hand, and its next word on it counts.
"""

import uuid
from datetime import datetime

from django.db.models import Q

from caret.foundation.ids import TenantId, UserId
from tenants.models import ScimUser, User


def sync_scim_active(*, tenant_id: TenantId, user_id: UserId, active: bool, now: datetime) -> None:
    """Inside the tenant's scope. For who was told of but never bound to his account, too: his
    domain may be verified later."""
    email = User.objects.values_list("email", flat=True).get(id=uuid.UUID(user_id))
    theirs = Q(user_id=uuid.UUID(user_id)) | Q(user_id=None, email=email)
    rows = ScimUser.objects.filter(theirs, tenant_id=tenant_id).exclude(active=active)
    for row in rows.order_by("id"):
        row.active, row.changed_at = active, now
        row.document = {**row.document, "active": active}
        row.save(update_fields=["active", "changed_at", "document"])
