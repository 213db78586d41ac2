"""Audit entries: who changed or read what. Database grants make the table append-only.

The entries of a tenant form a chain: each contains the hash of the previous one
(tenants.security.audit.hash_chain).
"""

from typing import ClassVar

from django.db import models

from caret.foundation.ids import uuid7
from caret.foundation.postgres.row_security import APPEND_ONLY, DeletableAfter, RowSecurity
from tenants.models.tenant import Tenant
from tenants.models.user import User


class AuditEntry(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid7, editable=False)  # ordered by time
    sequence = models.PositiveBigIntegerField()  # from 1, without gaps
    previous_hash = models.BinaryField()  # 32 bytes
    hash = models.BinaryField()  # 32 bytes
    actor_kind = models.CharField(max_length=12)  # tenants.security.authorization.actor.ActorKind
    # None: not a user.
    actor = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    actor_key = models.CharField(max_length=40)  # lookup ID of the key that was used; "": none
    action = models.CharField(max_length=60)  # dotted, e.g. "key.revoked"
    target = models.CharField(max_length=200)  # e.g. "key:Ab3dE6gH"
    before = models.JSONField(null=True)  # None: it did not exist; never contains secrets
    after = models.JSONField(null=True)
    address = models.GenericIPAddressField(null=True)  # None: not a network request
    request_id = models.CharField(max_length=64)  # "" outside HTTP
    reason = models.TextField()  # "": none was required
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            # Readers: exports and sinks, by ranges.
            models.UniqueConstraint(fields=["tenant", "sequence"], name="audit_entry_sequence"),
            RowSecurity(name="audit_entry_tenant", privileges=APPEND_ONLY),
            DeletableAfter(name="audit_entry_age", column="at", days=366),
        ]
        indexes: ClassVar = [
            # Reader: list_entries; the first and last entry of an exported period.
            models.Index(fields=["tenant", "at", "id"], name="audit_entry_at"),
            # Reader: list_entries of one target.
            models.Index(fields=["tenant", "target", "at"], name="audit_entry_target"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.target}"
