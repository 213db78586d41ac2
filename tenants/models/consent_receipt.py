"""That a tenant or a user has said yes or no to content being kept, or used to train models."""

from typing import ClassVar

from django.db import models

from caret.foundation.ids import uuid7
from caret.foundation.postgres.row_security import APPEND_ONLY, RowSecurity
from tenants.models.tenant import Tenant
from tenants.models.user import User


class ConsentReceipt(models.Model):
    """The last one of a kind is in force. It outlives what it allowed, as the evidence of it."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid7, editable=False)
    number = models.PositiveBigIntegerField()  # from 1, of the tenant's; clocks may jump, it grows
    # Whose consent it is. None: the tenant's own, by its policy.
    user = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    kind = models.TextField()  # tenants.privacy.consent.consent_texts.Kind
    is_given = models.BooleanField()
    wording = models.TextField()  # its version
    wording_sha256 = models.TextField()  # of its text
    # Who said it. None: the platform's operator. A tenant's no is a no of each of its users.
    actor = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    policy_version = models.PositiveIntegerField(null=True)  # None: not by a policy
    address = models.GenericIPAddressField(null=True)  # None: not over the network
    request_id = models.CharField(max_length=64)  # "" when not over HTTP
    created_at = models.DateTimeField()

    class Meta:
        db_table = "tenants_consent_receipt"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "number"], name="consent_receipt_number"),
            RowSecurity(name="consent_receipt_tenant", privileges=APPEND_ONLY),
        ]
        indexes: ClassVar = [
            # Reader: find_latest_statements, for the last one of a kind.
            models.Index(fields=["tenant", "user", "kind", "number"], name="consent_receipt_last"),
        ]

    def __str__(self) -> str:
        return f"{'yes' if self.is_given else 'no'} to {self.kind}"
