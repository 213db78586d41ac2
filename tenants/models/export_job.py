"""Export jobs, and their encrypted objects in the object store."""

from typing import ClassVar

from django.db import models

from caret.foundation.ids import uuid7
from caret.foundation.postgres.row_security import RowSecurity
from tenants.models.tenant import Tenant
from tenants.models.user import User


class ExportJob(models.Model):
    """A requested export, its progress and its result.

    The row remains after its file is deleted. It names the exported data and the requester.
    """

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid7, editable=False)
    definition = models.TextField()  # an export's name, or the evidence pack's
    media = models.TextField()  # format of the file: csv, ndjson, parquet, xlsx, zip
    # The exported period, half-open.
    since = models.DateTimeField()
    until = models.DateTimeField()
    # None: a service key, or the platform (the final export of a closing tenant).
    requested_by = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    requested_by_key = models.CharField(max_length=40)  # lookup ID; "": no key
    state = models.TextField()  # tenants.compliance.exports.jobs.state_machine.JobState
    error = models.TextField()  # a text of Caret; "": none
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)  # None: nothing was read yet
    finished_at = models.DateTimeField(null=True)  # None: not finished
    # Until this time, only the worker that set it may run the job. None, or a time in the past: any
    # worker may.
    claimed_until = models.DateTimeField(null=True)
    num_attempts = models.PositiveIntegerField(default=0)  # since the last progress
    # An ExportProgress (tenants.compliance.exports.jobs.progress) for each export of the job; an
    # evidence pack has several.
    members = models.JSONField()
    rows_done = models.BigIntegerField(default=0)
    rows_expected = models.BigIntegerField(null=True)  # None: unknown
    # These four are set when the file exists.
    name = models.TextField()  # of the file; "": no file yet
    num_bytes = models.BigIntegerField(default=0)  # of the file
    proof = models.TextField()  # the signed proof; "": no file yet
    expires_at = models.DateTimeField(null=True)  # when the file is deleted; None: no file yet
    # None: the store may still have its objects.
    objects_deleted_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "tenants_export_job"
        constraints: ClassVar = [
            RowSecurity(name="export_job_tenant", privileges=("SELECT", "INSERT", "UPDATE"))
        ]
        indexes: ClassVar = [
            # Reader: list_exports.
            models.Index(fields=["tenant", "created_at", "id"], name="export_job_created"),
            # Readers: the worker and the clean-up, for jobs that still have objects.
            models.Index(
                fields=["tenant", "state"],
                condition=models.Q(objects_deleted_at=None),
                name="export_job_with_objects",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.definition} {self.id}"


class ExportObject(models.Model):
    """An encrypted object in the object store: rows that were read, or a piece of the file.

    This database row is written before the object, so that each object has a row.
    """

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid7, editable=False)
    export_id = models.UUIDField()  # the export job; the migration adds its foreign key
    # The object contains rows of the export `members[pack_index]` of the job. None: the object is a
    # piece of the finished file.
    pack_index = models.PositiveSmallIntegerField(null=True)
    # The position among the objects of the export, or among the pieces of the file; from 0.
    number = models.PositiveIntegerField()
    stored_at = models.DateTimeField(null=True)  # None: not stored yet, or left by a killed worker

    class Meta:
        db_table = "tenants_export_object"
        constraints: ClassVar = [RowSecurity(name="export_object_tenant")]
        indexes: ClassVar = [
            # Readers: read_parts and downloads, in order; the clean-up.
            models.Index(
                fields=["tenant", "export_id", "pack_index", "number"], name="export_object_order"
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)
