"""Versions of a tenant's policy. The highest is in force."""

from typing import ClassVar

from django.db import models

from caret.foundation.postgres.row_security import APPEND_ONLY, RowSecurity
from tenants.models.erasure import shredded_only
from tenants.models.tenant import Tenant
from tenants.models.user import User


class PolicyVersion(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "version")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    version = models.PositiveIntegerField()  # from 1, without gaps
    document = models.JSONField()  # a caret.contracts.policy.TenantPolicy
    # None: the platform, or a key.
    author = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    # Lookup ID of the key that was used; "": none. Has a database default for the previous release.
    author_key = models.CharField(max_length=40, default="", db_default="")
    reason = models.TextField()
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            RowSecurity(name="policy_version_tenant", privileges=APPEND_ONLY),
            shredded_only("policy_version_shredded", "tenants_policyversion"),
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id} v{self.version}"
