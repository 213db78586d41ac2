"""Where content of completions is kept, by consent, and that it was erased; none of it is here."""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from caret.foundation.ids import uuid7
from caret.foundation.postgres.row_security import RowSecurity
from tenants.models.tenant import Tenant
from tenants.models.user import User


class ContentErasure(models.Model):
    """A demand that content is erased, from which a certificate can be made once it is finished."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid7, editable=False)
    # Whose content. None: of several, whose days are over.
    user = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    reason = models.TextField()  # tenants.privacy.content_capture.erasure.Reason
    num_objects = models.PositiveIntegerField()
    num_items = models.PositiveIntegerField()  # completions and edits in them
    num_bytes = models.PositiveBigIntegerField()  # sealed
    keys = models.JSONField()  # those that were shredded: [{"id", "fingerprint", "scope"}]
    requested_at = models.DateTimeField()  # from then on nothing of it can be read
    finished_at = models.DateTimeField(null=True)  # None: objects are still being deleted

    class Meta:
        db_table = "tenants_content_erasure"
        constraints: ClassVar = [
            RowSecurity(name="telemetry_erasure_tenant", privileges=("SELECT", "INSERT", "UPDATE"))
        ]

    def __str__(self) -> str:
        return f"{self.reason} {self.id}"


class ContentObject(models.Model):
    """An object of the store: a user's completions and edits of a few seconds, sealed."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid7, editable=False)
    user = models.ForeignKey(User, on_delete=models.PROTECT, db_index=False, related_name="+")
    request_ids = ArrayField(models.UUIDField())  # of the completions that it is about
    num_items = models.PositiveIntegerField()
    num_bytes = models.PositiveBigIntegerField()  # sealed
    is_for_training = models.BooleanField()  # its user has agreed to that, too
    created_at = models.DateTimeField()
    stored_at = models.DateTimeField(null=True)  # None: on its way to the store
    erasure_id = models.UUIDField(null=True)  # None: kept. The migration binds it.

    class Meta:
        db_table = "tenants_content_object"
        constraints: ClassVar = [RowSecurity(name="telemetry_object_tenant")]
        indexes: ClassVar = [
            # Reader: erasure, for all of a user's.
            models.Index(fields=["tenant", "user"], name="telemetry_object_user"),
            # Reader: the sweep, for those whose days are over.
            models.Index(fields=["tenant", "created_at"], name="telemetry_object_age"),
            # Reader: erasure, for those that are to be deleted.
            models.Index(
                fields=["tenant", "erasure_id"],
                condition=models.Q(erasure_id__isnull=False),
                name="telemetry_object_erased",
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)
