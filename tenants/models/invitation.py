"""Invitations to become a member, with the token's digest, never the token."""

import uuid
from typing import ClassVar

from django.db import models

from caret.foundation.postgres.row_security import RowSecurity
from tenants.base.permissions import Role
from tenants.models.tenant import Tenant
from tenants.models.user import User


class Invitation(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid.uuid4, editable=False)
    email = models.EmailField(max_length=254)  # lower case
    role = models.CharField(max_length=16, choices=[(r.value, r.name) for r in Role])
    digest = models.BinaryField()  # 32 bytes, see tenants.base.bearer_tokens
    # None: the platform.
    invited_by = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    mailed_at = models.DateTimeField(null=True)  # None: not sent
    accepted_at = models.DateTimeField(null=True)  # None: not accepted
    revoked_at = models.DateTimeField(null=True)  # None: not revoked

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "digest"], name="invitation_digest"),
            RowSecurity(name="invitation_tenant", privileges=("SELECT", "INSERT", "UPDATE")),
        ]

    def __str__(self) -> str:
        return f"{self.email} as {self.role}"
