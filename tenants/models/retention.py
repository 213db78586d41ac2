"""Retention rules, legal holds, purge runs and deletion certificates."""

import uuid
from typing import ClassVar

from django.db import models

from caret.foundation.ids import uuid7
from caret.foundation.postgres.row_security import APPEND_ONLY, RowSecurity
from tenants.models.tenant import Tenant
from tenants.models.user import User


class RetentionRule(models.Model):
    """A version of the retention that a tenant has set for a data class. The newest is in force."""

    pk = models.CompositePrimaryKey("tenant_id", "data_class", "version")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    data_class = models.CharField(max_length=40)  # tenants.policy.data_classes.DataClass
    version = models.PositiveIntegerField()  # from 1
    days = models.PositiveIntegerField()  # of retention
    # True: the default applies again; `days` is the default at that time.
    is_default = models.BooleanField(db_default=False)
    reason = models.TextField()
    # None: the platform, an operator, or a key without an owner.
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
    """A legal hold: until its release, no purge deletes the data of a period.

    It applies to one user or to all users.
    """

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid7, editable=False)
    name = models.CharField(max_length=120)  # of the legal matter
    user_id = models.UUIDField(null=True)  # None: all users
    # The period of the data, half-open; None: unbounded on that side.
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
    """One purge of one data class, with numbers of records.

    opening + records created since then - deleted = closing
    """

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid7, editable=False)
    data_class = models.CharField(max_length=40)
    days = models.PositiveIntegerField()  # of retention
    rule_version = models.PositiveIntegerField(null=True)  # None: no rule was set yet
    # Older records are to be deleted. If the retention period is extended during the run, the
    # cutoff moves back.
    cutoff = models.DateTimeField()
    # Number of records at the end of the previous run. For the first run, and for the classes of
    # tenants.privacy.retention.purge._ERASED_OTHERWISE: at the beginning of this run.
    opening = models.BigIntegerField()
    deleted = models.BigIntegerField(default=0)  # number of records deleted so far
    created_at = models.DateTimeField()
    # The remaining columns are None while the run is active or waits to be resumed.
    closing = models.BigIntegerField(null=True)  # number of records at the end
    # The number of remaining records that are older than created_at. None also for runs from before
    # this column existed.
    num_older_remaining = models.BigIntegerField(null=True)
    # The number of records that are old enough to delete, but were kept: they are on legal hold, or
    # follow a kept record of a chain.
    held = models.BigIntegerField(null=True)
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
            # Readers: the search for the previous run; list_runs.
            models.Index(fields=["tenant", "data_class", "created_at"], name="purge_run_class"),
            models.Index(fields=["tenant", "created_at", "id"], name="purge_run_created"),
        ]

    def __str__(self) -> str:
        return f"{self.data_class} {self.created_at}"


class DeletionCertificate(models.Model):
    """A signed document about deleted data.

    `tenants.privacy.retention.certificates` defines its format.
    """

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid.uuid4, editable=False)
    number = models.PositiveIntegerField()  # from 1, without gaps
    document = models.TextField()  # the signed JSON, with its signature
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
