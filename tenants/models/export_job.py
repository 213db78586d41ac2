"""Exports that are built in the background, and the sealed objects that they are made of."""

from typing import ClassVar

from django.db import models

from caret.foundation.ids import uuid7
from caret.foundation.postgres.row_security import RowSecurity
from tenants.models.tenant import Tenant
from tenants.models.user import User


class ExportJob(models.Model):
    """What was asked for, how far it has come, and what was made of it. The row outlives its file
    as the evidence of who carried away what."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid7, editable=False)
    definition = models.TextField()  # an export's name, or that of the evidence pack
    media = models.TextField()  # csv, ndjson, parquet, xlsx, zip
    since = models.DateTimeField()
    until = models.DateTimeField()
    # None: a key asked for it.
    requested_by = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    requested_by_key = models.CharField(max_length=40)  # lookup id; "": no key
    state = models.TextField()  # tenants.compliance.exports.jobs.state_machine.State
    error = models.TextField()  # our own words; "": none
    created_at = models.DateTimeField()
    began_at = models.DateTimeField(null=True)  # None: nothing was read yet
    finished_at = models.DateTimeField(null=True)
    # A worker has it until then, as long as it has this very moment here; None: nobody.
    claimed_until = models.DateTimeField(null=True)
    num_attempts = models.PositiveIntegerField(default=0)  # since it last came on
    members = models.JSONField()  # a list of tenants.compliance.exports.jobs.progress.Member
    rows_done = models.BigIntegerField(default=0)
    rows_expected = models.BigIntegerField(null=True)  # None: not known
    # Of the file, once there is one.
    name = models.TextField()  # ""
    num_bytes = models.BigIntegerField(default=0)
    proof = models.TextField()  # as it was signed; ""
    expires_at = models.DateTimeField(null=True)
    swept_at = models.DateTimeField(null=True)  # None: it may have objects in the store

    class Meta:
        db_table = "tenants_export_job"
        constraints: ClassVar = [
            RowSecurity(name="export_build_tenant", privileges=("SELECT", "INSERT", "UPDATE"))
        ]
        indexes: ClassVar = [
            # Reader: list_builds.
            models.Index(fields=["tenant", "created_at", "id"], name="export_build_created"),
            # Readers: the worker and the sweep, of what is not over.
            models.Index(
                fields=["tenant", "state"],
                condition=models.Q(swept_at=None),
                name="export_build_unswept",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.definition} {self.id}"


class ExportObject(models.Model):
    """A sealed object of the store: rows that were read, or a piece of the file. Its row is there
    before it, so that nothing lies in the store that no row knows."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid7, editable=False)
    build_id = models.UUIDField()  # the migration binds it
    # Whose rows: the place of its definition among the build's members; None: the file's.
    member = models.PositiveSmallIntegerField(null=True)
    number = models.PositiveIntegerField()  # from 0
    stored_at = models.DateTimeField(null=True)  # None: on its way, or left by who was killed

    class Meta:
        db_table = "tenants_export_object"
        constraints: ClassVar = [RowSecurity(name="export_object_tenant")]
        indexes: ClassVar = [
            # Readers: whoever reads rows or the file in order; the sweep.
            models.Index(
                fields=["tenant", "build_id", "member", "number"], name="export_object_order"
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)
