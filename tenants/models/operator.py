"""Somebody who runs the platform: no tenant's, with an account and pages of his own."""

import uuid
from typing import ClassVar

from django.db import models

from caret.foundation.postgres.row_security import Grants
from tenants.base.operator_roles import OperatorRole


class Operator(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    handle = models.CharField(max_length=20, unique=True)  # by which audit trails name him for good
    name = models.CharField(max_length=120)
    role = models.CharField(max_length=12, choices=[(r.value, r.name) for r in OperatorRole])
    password = models.CharField(max_length=128)  # hashed
    sealed_factor = models.BinaryField()  # of one-time codes: tenants.fleet.operators.totp
    last_step = models.BigIntegerField(default=0)  # of the last code taken: each is good once
    created_at = models.DateTimeField()
    disabled_at = models.DateTimeField(null=True)  # None: can sign in

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
