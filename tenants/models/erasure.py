"""Erasures of users and of whole tenants. A finished erasure has a deletion certificate."""

from typing import ClassVar

from django.db import models

from caret.foundation.ids import uuid7
from caret.foundation.postgres.row_security import DeletableWhen, RowSecurity
from tenants.models.tenant import Tenant


class Erasure(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid7, editable=False)
    user_id = models.UUIDField(null=True)  # None: the whole tenant
    reason = models.TextField()
    requested_by_id = models.UUIDField(null=True)  # None: not a user
    # The secret from which the pseudonyms that replace the user's ID are derived. None: the erasure
    # is finished, and nobody can trace pseudonyms back to the user any more.
    secret = models.BinaryField(null=True)
    keys = models.JSONField()  # destroyed encryption keys: [{"id", "fingerprint", "scope"}]
    counts = models.JSONField()  # erased so far: table name, or "objects" -> number
    legal_hold_ids = models.JSONField()  # of legal holds that kept rows when the erasure finished
    requested_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)  # None: not finished

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "user_id"],
                condition=models.Q(finished_at=None),
                nulls_distinct=False,
                name="erasure_one_at_a_time",
            ),
            models.CheckConstraint(
                condition=models.Q(finished_at=None, secret__isnull=False)
                | models.Q(finished_at__isnull=False, secret=None),
                name="erasure_finished_without_secret",
            ),
            RowSecurity(name="erasure_tenant", privileges=("SELECT", "INSERT", "UPDATE")),
        ]
        indexes: ClassVar = [
            # Reader: list_erasures.
            models.Index(fields=["tenant", "requested_at", "id"], name="erasure_requested"),
        ]

    def __str__(self) -> str:
        return str(self.id)


def allow_deletion_after_shredding(name: str, table: str) -> DeletableWhen:
    """Return the condition under which rows of an append-only table can be deleted.

    The condition is that the erasure of the whole tenant was requested. Such a request destroys the
    tenant's keys first.
    """
    condition = f"e.tenant_id = {table}.tenant_id AND e.user_id IS NULL"
    return DeletableWhen(
        name=name, condition=f"EXISTS (SELECT FROM tenants_erasure e WHERE {condition})"
    )
