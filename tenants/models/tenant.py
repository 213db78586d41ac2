"""The installation's tenants, with their status and settings."""

import uuid
from typing import ClassVar

from django.db import models

from caret.contracts.snapshot import TenantStatus
from caret.foundation.postgres.row_security import Grants


class Tenant(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    slug = models.SlugField(max_length=63, unique=True)  # name in URLs and commands; never changes
    name = models.CharField(max_length=120)  # the name that people see
    status = models.CharField(max_length=12, choices=[(s.value, s.name) for s in TenantStatus])
    # Where its data is stored. Only operators change it.
    region = models.CharField(max_length=32, default="local")
    is_mfa_required = models.BooleanField(default=False)  # for users who sign in with a password
    cache_epoch = models.PositiveIntegerField(default=0)  # increasing it empties the prefix cache
    # Increases with each change that gateways must learn.
    snapshot_version = models.PositiveBigIntegerField(default=0)
    # The newest snapshot version that is known to be in Redis.
    published_version = models.PositiveBigIntegerField(default=0)
    # Reports suppress groups with fewer users than this; 1: they suppress no group.
    min_group_users = models.PositiveSmallIntegerField(default=5)
    # Limits that operators set, in addition to those of the tenant's policy; None: unlimited.
    max_concurrent_completions = models.PositiveIntegerField(null=True)  # for each gateway
    max_requests_per_minute = models.PositiveIntegerField(null=True)  # over all gateways
    trial_ends_on = models.DateField(null=True)  # last day (UTC) with completions; None: no trial
    # The last reminder that the owners got (tenants.identity.trials.REMINDER_DAYS); None: none.
    trial_reminder_days = models.PositiveSmallIntegerField(null=True)
    # End of the grace period, when the tenant is closed and its data deleted; None: not closing.
    closes_at = models.DateTimeField(null=True)
    # The export job that was requested when the closing began; None: it never began.
    final_export_id = models.UUIDField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            Grants(
                name="tenant_grants",
                reason="the list of tenants is read before a tenant is known; no customer content",
                privileges=("SELECT", "INSERT", "UPDATE"),
            )
        ]

    def __str__(self) -> str:
        return self.slug
