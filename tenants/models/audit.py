"""The audit log: its entries, the heads of its chain, and the sinks that entries are pushed to.

An entry names the actor, the action and the target. Database grants make the table of entries
append-only; only entries older than a year can be deleted. The entries of a tenant form a chain:
each contains the hash of the previous one (tenants.security.audit.hash_chain).
"""

import uuid
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
    actor_key = models.CharField(max_length=40)  # not only API keys, see Actor.credential_name
    action = models.CharField(max_length=60)  # dotted, e.g. "key.revoked"
    target = models.CharField(max_length=200)  # e.g. "key:Ab3dE6gH"
    # Fields of the target before and after the change, without secrets. None: there is nothing to
    # record, for example because the target did not exist.
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    address = models.GenericIPAddressField(null=True)  # of the client; None: not a network request
    request_id = models.CharField(max_length=64)  # "" outside HTTP
    reason = models.TextField()  # "": none was given
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            # Readers: list_entries; exports and sinks, which read ranges of entries.
            models.UniqueConstraint(fields=["tenant", "sequence"], name="audit_entry_sequence"),
            RowSecurity(name="audit_entry_tenant", privileges=APPEND_ONLY),
            DeletableAfter(name="audit_entry_age", column="at", days=366),
        ]
        indexes: ClassVar = [
            # Readers: list_entries of a period; the first and last entry of an exported period.
            models.Index(fields=["tenant", "at", "id"], name="audit_entry_at"),
            # Reader: list_entries of one target.
            models.Index(fields=["tenant", "target", "at"], name="audit_entry_target"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.target}"


class AuditHead(models.Model):
    """The last entry of a tenant's chain.

    A transaction that adds an entry locks this row first. Two entries can therefore never follow
    the same entry.
    """

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
    """A signed statement that the chain had reached the entry with this sequence number.

    Append-only.
    """

    pk = models.CompositePrimaryKey("tenant_id", "sequence")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    sequence = models.PositiveBigIntegerField()
    hash = models.BinaryField()  # 32 bytes
    signed_at = models.DateTimeField()
    key_id = models.CharField(max_length=16)  # of the signing key (caret.foundation.crypto.signing)
    # 64 bytes, of the document that hash_chain.build_head_document returns.
    signature = models.BinaryField()

    class Meta:
        constraints: ClassVar = [
            RowSecurity(name="signed_audit_head_tenant", privileges=APPEND_ONLY)
        ]

    def __str__(self) -> str:
        return str(self.sequence)


class AuditSink(models.Model):
    """A receiver of the tenant's audit entries, for example a SIEM, and the state of delivery."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=12)  # tenants.compliance.audit_sinks.endpoint.SinkKind
    name = models.CharField(max_length=120)
    # Only scheme, host and port of the address: paths of webhooks are often secrets.
    origin = models.CharField(max_length=300)
    # The whole address and the secret, sealed by tenants.compliance.audit_sinks.secret_storage.
    sealed = models.BinaryField()
    created_at = models.DateTimeField()
    # All entries up to this sequence number were delivered.
    delivered_sequence = models.PositiveBigIntegerField()
    delivered_at = models.DateTimeField(null=True)  # None: nothing delivered yet
    failed_since = models.DateTimeField(null=True)  # None: the last attempt succeeded
    # A text of Caret, never of the sink. "": the last attempt succeeded.
    last_error = models.CharField(max_length=200)
    num_failures = models.PositiveIntegerField(default=0)  # since the last delivered entry
    next_attempt_at = models.DateTimeField(null=True)  # None: immediately
    # Until this time, only the worker that set it may deliver. None, or a time in the past: any
    # worker may.
    claimed_until = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "name"], name="audit_sink_name"),
            RowSecurity(name="audit_sink_tenant"),
        ]

    def __str__(self) -> str:
        return self.name
