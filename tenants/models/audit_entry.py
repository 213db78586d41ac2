"""Who changed what; can be added to, never changed (by grants)."""

from typing import ClassVar

from django.db import models

from caret.foundation.ids import uuid7
from caret.foundation.postgres.row_security import APPEND_ONLY, RowSecurity
from tenants.models.tenant import Tenant
from tenants.models.user import User


class AuditEntry(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid7, editable=False)  # ordered by time
    # None: the platform itself.
    actor = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    action = models.CharField(max_length=60)  # dotted, e.g. "key.revoked"
    target = models.CharField(max_length=200)  # e.g. "key:Ab3dE6gH"
    before = models.JSONField(null=True)  # None: there was nothing; never secrets
    after = models.JSONField(null=True)
    address = models.GenericIPAddressField(null=True)  # None: not over the network
    request_id = models.CharField(max_length=64)  # "" when not over HTTP
    reason = models.TextField()  # "" when none was asked for
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [RowSecurity(name="audit_entry_tenant", privileges=APPEND_ONLY)]

    def __str__(self) -> str:
        return f"{self.action} {self.target}"
