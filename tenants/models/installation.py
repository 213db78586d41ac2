"""What this installation can do, as its gateways report it."""

from typing import ClassVar

from django.db import models

from caret.foundation.ids import uuid7
from caret.foundation.postgres.row_security import APPEND_ONLY, Grants


class CapabilityChange(models.Model):
    """A change of what the gateways can do. The newest of each capability holds."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    capability = models.CharField(max_length=64)  # tenants.policy.enforcement
    is_available = models.BooleanField()
    since = models.DateTimeField()

    class Meta:
        db_table = "tenants_capability_change"
        constraints: ClassVar = [
            # Reader: the newest change of each capability.
            models.UniqueConstraint(fields=["capability", "since"], name="capability_change_once"),
            Grants(
                name="capability_change_grants",
                reason="describes the installation, not a tenant",
                privileges=APPEND_ONLY,
            ),
        ]

    def __str__(self) -> str:
        return f"{self.capability}: {self.is_available}"
