"""Memberships of users in tenants."""

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
    # None: a current member. The row stays for keys and audit entries that refer to it, and is
    # reused for a member who returns.
    ended_at = models.DateTimeField(null=True)
    # When the tenant's data of the user was erased; None: not erased. Other tenants' erasures read
    # it.
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
