"""Operators of the platform. They belong to no tenant and have their own accounts and pages."""

import uuid
from typing import ClassVar

from django.db import models

from caret.foundation.postgres.row_security import Grants
from tenants.base.operator_roles import OperatorRole


class Operator(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # Audit logs name the operator by it forever.
    handle = models.CharField(max_length=20, unique=True)
    name = models.CharField(max_length=120)
    role = models.CharField(max_length=12, choices=[(r.value, r.name) for r in OperatorRole])
    password = models.CharField(max_length=128)  # hashed
    # Secret of the one-time codes: tenants.fleet.operators.totp.
    sealed_factor = models.BinaryField()
    # Of the last accepted code, because each is valid once.
    last_step = models.BigIntegerField(default=0)
    created_at = models.DateTimeField()
    disabled_at = models.DateTimeField(null=True)  # None: enabled

    class Meta:
        constraints: ClassVar = [
            Grants(
                name="operator_grants",
                reason="the platform's own people, who belong to no tenant",
                privileges=("SELECT", "INSERT", "UPDATE"),
            )
        ]

    def __str__(self) -> str:
        return self.handle
