"""Consent receipts of tenants and users for content capture and training."""

from typing import ClassVar

from django.db import models

from caret.foundation.ids import uuid7
from caret.foundation.postgres.row_security import APPEND_ONLY, RowSecurity
from tenants.models.tenant import Tenant
from tenants.models.user import User


class ConsentReceipt(models.Model):
    """A yes or no. The last one of a kind is in force. It stays as evidence of what it allowed."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid7, editable=False)
    number = models.PositiveBigIntegerField()  # from 1, per tenant; increases even if clocks jump
    # The user whose consent it is. None: the tenant's own, by its policy.
    user = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    kind = models.TextField()  # tenants.privacy.consent.consent_texts.ConsentKind
    is_given = models.BooleanField()
    wording = models.TextField()  # version of the text
    wording_sha256 = models.TextField()  # of the text
    # The user who said it. None: an operator. A tenant's no also ends the consent of each user.
    actor = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    policy_version = models.PositiveIntegerField(null=True)  # None: not caused by a policy
    address = models.GenericIPAddressField(null=True)  # None: not a network request
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
        return f"{'yes' if self.is_given else 'no'} to {self.kind}"
