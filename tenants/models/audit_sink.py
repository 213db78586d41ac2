"""Audit sinks: targets that a tenant's audit entries are pushed to, with their cursors."""

import uuid
from typing import ClassVar

from django.db import models

from caret.foundation.postgres.row_security import RowSecurity
from tenants.models.tenant import Tenant


class AuditSink(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=12)  # tenants.compliance.audit_sinks.endpoint.SinkKind
    name = models.CharField(max_length=120)
    # Scheme, host and port only: paths of webhooks are often secrets.
    origin = models.CharField(max_length=300)
    sealed = (
        models.BinaryField()
    )  # tenants.compliance.audit_sinks.secret_storage: the whole address and the secret
    created_at = models.DateTimeField()
    # The cursor: all entries up to here were delivered.
    delivered_sequence = models.PositiveBigIntegerField()
    delivered_at = models.DateTimeField(null=True)  # None: nothing delivered yet
    failed_since = models.DateTimeField(null=True)  # None: the last attempt succeeded
    last_error = models.CharField(max_length=200)  # our own text; "": the last attempt succeeded
    num_failures = models.PositiveIntegerField(default=0)  # since the last success
    next_attempt_at = models.DateTimeField(null=True)  # None: immediately
    # The worker that wrote this exact time holds the claim until then; None: not claimed.
    claimed_until = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "name"], name="audit_sink_name"),
            RowSecurity(name="audit_sink_tenant"),
        ]

    def __str__(self) -> str:
        return self.name
