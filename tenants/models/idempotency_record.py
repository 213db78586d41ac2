"""Stored responses of the REST API, for requests that a caller may have to repeat."""

import uuid
from typing import ClassVar

from django.db import models

from caret.foundation.postgres.row_security import RowSecurity
from tenants.models.tenant import Tenant


class IdempotencyRecord(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid.uuid4, editable=False)
    caller = models.CharField(max_length=120)  # Actor.rate_limit_key
    # SHA-256 of the text in the request's header Idempotency-Key. It is not an API key.
    key_digest = models.BinaryField()
    # SHA-256 of the request's method, URL and body, and of the caller's permissions.
    request_digest = models.BinaryField()
    status = models.PositiveSmallIntegerField()  # of the HTTP response
    # Encrypted, because it may contain a secret that is shown once, such as an API key's text.
    sealed_body = models.BinaryField()
    created_at = models.DateTimeField()

    class Meta:
        db_table = "tenants_idempotency_record"
        # "kept_answer" is an earlier name of the table. New names would need a migration.
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "caller", "key_digest"], name="kept_answer_key"
            ),
            RowSecurity(name="kept_answer_tenant", privileges=("SELECT", "INSERT", "DELETE")),
        ]
        indexes: ClassVar = [
            # Reader: delete_expired_records.
            models.Index(fields=["tenant", "created_at"], name="kept_answer_age"),
        ]

    def __str__(self) -> str:
        return str(self.id)
