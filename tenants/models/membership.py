"""What a user is to a tenant."""

from typing import ClassVar

from django.db import models

from caret.foundation.postgres.row_security import RowSecurity
from tenants.base.permissions import Role
from tenants.models.tenant import Tenant
from tenants.models.user import User


class Membership(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "user_id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    # Indexed by Django; read by find_memberships, which knows the user and not yet the tenant.
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    role = models.CharField(max_length=16, choices=[(r.value, r.name) for r in Role])
    created_at = models.DateTimeField()
    # None: he is a member. The row stays for those that point at it (keys, audit); who comes back
    # is a member by the same row.
    ended_at = models.DateTimeField(null=True)
    # When all that this tenant had of him went; None: it did not. Other tenants go by it.
    erased_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            RowSecurity(
                name="membership_tenant",
                privileges=("SELECT", "INSERT", "UPDATE"),
                user_column="user_id",
            )
        ]

    def __str__(self) -> str:
        return f"{self.user_id} is {self.role} of {self.tenant_id}"
