"""Content capture: consent receipts, captured objects in the object store, their erasures."""

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from caret.foundation.ids import uuid7
from caret.foundation.postgres.row_security import APPEND_ONLY, RowSecurity
from tenants.models.tenant import Tenant
from tenants.models.user import User


class ContentErasure(models.Model):
    """A requested erasure of captured content. When it is finished, a certificate is issued."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid7, editable=False)
    # The user whose content is erased. None: objects of several users that reached the end of their
    # retention, or were never completely stored.
    user = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    reason = models.TextField()  # tenants.privacy.content_capture.erasure.ContentErasureReason
    num_objects = models.PositiveIntegerField()
    # Captured completions, and captured texts of suggestions after users changed them.
    num_items = models.PositiveIntegerField()
    num_bytes = models.PositiveBigIntegerField()  # size of the encrypted objects
    keys = models.JSONField()  # destroyed encryption keys: [{"id", "fingerprint", "scope"}]
    # If keys were destroyed, the content has been unreadable since then.
    requested_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)  # None: objects are still being deleted

    class Meta:
        db_table = "tenants_content_erasure"
        constraints: ClassVar = [
            RowSecurity(name="content_erasure_tenant", privileges=("SELECT", "INSERT", "UPDATE"))
        ]

    def __str__(self) -> str:
        return f"{self.reason} {self.id}"


class ContentObject(models.Model):
    """An encrypted object in the object store: what was captured of a user within a few seconds."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid7, editable=False)
    user = models.ForeignKey(User, on_delete=models.PROTECT, db_index=False, related_name="+")
    request_ids = ArrayField(models.UUIDField())  # of the completions that it contains
    num_items = models.PositiveIntegerField()  # as in ContentErasure
    num_bytes = models.PositiveBigIntegerField()  # size of the encrypted object
    is_for_training = models.BooleanField()  # the user also consents to training
    created_at = models.DateTimeField()
    stored_at = models.DateTimeField(null=True)  # None: not stored yet, or left by a killed worker
    # The ContentErasure that deletes the object; None: none. The migration adds its foreign key.
    erasure_id = models.UUIDField(null=True)

    class Meta:
        db_table = "tenants_content_object"
        constraints: ClassVar = [RowSecurity(name="content_object_tenant")]
        indexes: ClassVar = [
            # Reader: erasure of a user's objects.
            models.Index(fields=["tenant", "user"], name="content_object_user"),
            # Reader: clean_up_content, at the end of retention.
            models.Index(fields=["tenant", "created_at"], name="content_object_age"),
            # Reader: the deletion of objects that belong to an erasure.
            models.Index(
                fields=["tenant", "erasure_id"],
                condition=models.Q(erasure_id__isnull=False),
                name="content_object_erased",
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)


class ConsentReceipt(models.Model):
    """A yes or no to content capture or training, of a user or of the tenant.

    The last receipt of each kind is in force, for each user and for the tenant.
    """

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid7, editable=False)
    number = models.PositiveBigIntegerField()  # from 1, per tenant; increases even if clocks jump
    # The user whose consent it is. None: the tenant's own, by its policy.
    user = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    kind = models.TextField()  # tenants.privacy.consent.consent_texts.ConsentKind
    is_granted = models.BooleanField()
    wording = models.TextField()  # version of the consent text, for example "tenant-1"
    wording_sha256 = models.TextField()  # of the text, in hex
    # The user who caused the receipt. None: a service key, an operator or the platform. If an
    # administrator's policy change ends the consent of other users, it is that administrator.
    actor = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    # The policy version that caused the receipt; None: not caused by a change of policy.
    policy_version = models.PositiveIntegerField(null=True)
    address = models.GenericIPAddressField(null=True)  # of the client; None: not a network request
    request_id = models.CharField(max_length=64)  # "" outside HTTP
    created_at = models.DateTimeField()

    class Meta:
        db_table = "tenants_consent_receipt"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "number"], name="consent_receipt_number"),
            RowSecurity(name="consent_receipt_tenant", privileges=APPEND_ONLY),
        ]
        indexes: ClassVar = [
            # Reader: find_latest_statements.
            models.Index(fields=["tenant", "user", "kind", "number"], name="consent_receipt_last"),
        ]

    def __str__(self) -> str:
        return f"{'yes' if self.is_granted else 'no'} to {self.kind}"
