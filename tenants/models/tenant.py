"""A customer, as the platform's directory lists it."""

import uuid
from typing import ClassVar

from django.db import models

from caret.contracts.snapshot import TenantStatus
from caret.foundation.postgres.row_security import Grants


class Tenant(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    slug = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=120)
    status = models.CharField(max_length=12, choices=[(s.value, s.name) for s in TenantStatus])
    region = models.CharField(
        max_length=32, default="local"
    )  # where its data is kept; corrected by the platform's operators alone
    is_mfa_required = models.BooleanField(default=False)  # of who signs in by a password
    cache_epoch = models.PositiveIntegerField(default=0)  # raising it empties the prefix cache
    snapshot_version = models.PositiveBigIntegerField(default=0)  # grows with each change
    published_version = models.PositiveBigIntegerField(default=0)  # what Redis is known to hold
    # Reports suppress groups of fewer people; 1: they suppress none.
    min_group_users = models.PositiveSmallIntegerField(default=5)
    # What the platform allows at most, whatever the tenant's policy says; None: no bound.
    max_concurrent_completions = models.PositiveIntegerField(null=True)  # on one gateway
    max_requests_per_minute = models.PositiveIntegerField(null=True)  # on all of them
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            Grants(
                name="tenant_grants",
                reason="the directory is read before a tenant is chosen; no customer content",
                privileges=("SELECT", "INSERT", "UPDATE"),
            )
        ]

    def __str__(self) -> str:
        return self.slug
