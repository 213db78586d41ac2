"""What is kept for how long, what may not be deleted, and what was."""

import uuid
from typing import ClassVar

from django.db import models

from caret.foundation.ids import uuid7
from caret.foundation.postgres.row_security import APPEND_ONLY, RowSecurity
from tenants.models.tenant import Tenant
from tenants.models.user import User


class RetentionRule(models.Model):
    """A tenant's own days for a class of data, version after version; the newest is in force."""

    pk = models.CompositePrimaryKey("tenant_id", "data_class", "version")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    data_class = models.CharField(max_length=40)
    version = models.PositiveIntegerField()  # from 1
    days = models.PositiveIntegerField()
    # The default holds again, as if nothing were set; `days`: what it was when that was said.
    is_default = models.BooleanField(db_default=False)
    reason = models.TextField()
    # None: the platform itself.
    author = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            RowSecurity(name="retention_rule_tenant", privileges=APPEND_ONLY),
        ]

    def __str__(self) -> str:
        return f"{self.data_class} {self.version}"


class LegalHold(models.Model):
    """What may not be deleted until it is released: a user's data, or everybody's, of a period."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid7, editable=False)
    name = models.CharField(max_length=120)  # of the matter
    user_id = models.UUIDField(null=True)  # None: everybody's
    # Of the data, half-open; None: no bound.
    since = models.DateTimeField(null=True)
    until = models.DateTimeField(null=True)
    reason = models.TextField()
    created_at = models.DateTimeField()
    released_at = models.DateTimeField(null=True)  # None: in force

    class Meta:
        constraints: ClassVar = [
            RowSecurity(name="legal_hold_tenant", privileges=("SELECT", "INSERT", "UPDATE")),
        ]
        indexes: ClassVar = [
            # Reader: list_holds.
            models.Index(fields=["tenant", "created_at", "id"], name="legal_hold_created"),
        ]

    def __str__(self) -> str:
        return self.name


class PurgeRun(models.Model):
    """One purge of one class: opening + created - deleted = closing."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid7, editable=False)
    data_class = models.CharField(max_length=40)
    days = models.PositiveIntegerField()
    rule_version = models.PositiveIntegerField(null=True)  # None: there was no rule yet
    cutoff = models.DateTimeField()  # what is older was to go
    opening = models.BigIntegerField()  # records when the run before this one had ended
    deleted = models.BigIntegerField(default=0)  # so far
    created_at = models.DateTimeField()
    # From here on None: it runs, or was killed and will be resumed.
    closing = models.BigIntegerField(null=True)
    # Of these those that are older than created_at. None: also of a run before there was this.
    settled = models.BigIntegerField(null=True)
    held = models.BigIntegerField(null=True)  # old enough to go, and on hold
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "data_class"],
                condition=models.Q(finished_at=None),
                name="purge_run_one_at_a_time",
            ),
            RowSecurity(name="purge_run_tenant", privileges=("SELECT", "INSERT", "UPDATE")),
        ]
        indexes: ClassVar = [
            # Readers: the run before this one; list_runs.
            models.Index(fields=["tenant", "data_class", "created_at"], name="purge_run_class"),
            models.Index(fields=["tenant", "created_at", "id"], name="purge_run_created"),
        ]

    def __str__(self) -> str:
        return f"{self.data_class} {self.created_at}"


class DeletionCertificate(models.Model):
    """A signed document about what was deleted; `tenants.privacy.retention.certificates` says its
    shape."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid.uuid4, editable=False)
    number = models.PositiveIntegerField()  # from 1, without gaps
    document = models.TextField()  # JSON as it was signed, with its signature
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "number"], name="deletion_certificate_number"
            ),
            RowSecurity(name="deletion_certificate_tenant", privileges=APPEND_ONLY),
        ]
        indexes: ClassVar = [
            # Reader: list_certificates.
            models.Index(
                fields=["tenant", "created_at", "id"], name="deletion_certificate_created"
            ),
        ]

    def __str__(self) -> str:
        return str(self.number)
