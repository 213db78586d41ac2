"""Heads of tenants' audit chains, and signed heads."""

from typing import ClassVar

from django.db import models

from caret.foundation.postgres.row_security import APPEND_ONLY, RowSecurity
from tenants.models.tenant import Tenant


class AuditHead(models.Model):
    """The last entry of a chain. The next entry's writer locks it, so that a chain never forks."""

    tenant = models.OneToOneField(
        Tenant, primary_key=True, on_delete=models.PROTECT, related_name="+"
    )
    sequence = models.PositiveBigIntegerField()  # 0: no entry yet
    hash = models.BinaryField()  # 32 bytes

    class Meta:
        constraints: ClassVar = [
            RowSecurity(name="audit_head_tenant", privileges=("SELECT", "INSERT", "UPDATE"))
        ]

    def __str__(self) -> str:
        return str(self.sequence)


class SignedAuditHead(models.Model):
    """A signed statement that the chain had reached this entry. Append-only."""

    pk = models.CompositePrimaryKey("tenant_id", "sequence")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    sequence = models.PositiveBigIntegerField()
    hash = models.BinaryField()  # 32 bytes
    signed_at = models.DateTimeField()
    key_id = models.CharField(max_length=16)  # caret.foundation.crypto.signing
    signature = models.BinaryField()  # 64 bytes, over tenants.security.audit.signed_heads' document

    class Meta:
        constraints: ClassVar = [
            RowSecurity(name="signed_audit_head_tenant", privileges=APPEND_ONLY)
        ]

    def __str__(self) -> str:
        return str(self.sequence)
