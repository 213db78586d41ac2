"""API keys with their digests, never their texts. A rotated key has two digests for some time."""

import uuid
from datetime import datetime, timedelta
from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q, QuerySet
from django.db.models.functions import Greatest

from caret.contracts.api_key import KeyKind
from caret.foundation.postgres.row_security import RowSecurity
from tenants.models.tenant import Tenant
from tenants.models.user import User


def list_default_scopes() -> list[str]:
    return ["inference"]


class ApiKey(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid.uuid4, editable=False)
    lookup_id = models.CharField(max_length=8)  # the part of the key's text that is not secret
    digest = models.BinaryField()  # 32 bytes, see caret.contracts.api_key.digest_key
    pepper_version = models.PositiveSmallIntegerField()  # of the pepper in the digest
    kind = models.CharField(max_length=8, choices=[(k.value, k.name) for k in KeyKind])
    # None: a service key. The migration adds a foreign key from (tenant_id, owner_id) to a
    # membership.
    owner = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    # `created_by` is the user who created the key, and `issued_by` the user who saw its current
    # text. If a request with another API key created or rotated this key, the user is the one in
    # the `issued_by` of that other key. Each field is None for the platform, an operator or an
    # unknown user. The migration adds foreign keys to memberships.
    created_by = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    issued_by = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    name = models.CharField(max_length=120)
    scopes = ArrayField(models.CharField(max_length=40), default=list_default_scopes)  # sorted
    # Networks that the key may be used from; empty: any.
    networks = ArrayField(models.CharField(max_length=64), default=list)
    created_at = models.DateTimeField()
    # When a rotation created the current text; None: the key was never rotated.
    issued_at = models.DateTimeField(null=True)
    # The previous text and the end of its validity; None: there is no previous text.
    previous_digest = models.BinaryField(null=True)
    previous_pepper_version = models.PositiveSmallIntegerField(null=True)
    previous_ends_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)  # None: never
    revoked_at = models.DateTimeField(null=True)  # None: in force
    last_used_at = models.DateTimeField(null=True)  # to the minute; None: never used
    # Each start of the playground gives the key a new text (tenants.identity.api_keys.playground).
    is_playground = models.BooleanField(db_default=False)
    # Issued to an editor by the device flow (tenants.identity.own_keys.device_requests).
    is_device = models.BooleanField(db_default=False)
    leaked_at = models.DateTimeField(null=True)  # when a leak was reported; None: never
    leak_notified_at = models.DateTimeField(null=True)  # when the e-mail was sent; None: never

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "lookup_id"], name="api_key_lookup"),
            RowSecurity(
                name="api_key_tenant",
                privileges=("SELECT", "INSERT", "UPDATE"),
                lookup_column="lookup_id",
            ),
        ]
        indexes: ClassVar = [
            # Reader: list_keys of one owner, and the foreign key to the membership.
            models.Index(fields=["tenant", "owner"], name="api_key_owner"),
            # Reader: authenticate_key, which knows the lookup ID and not yet the tenant.
            models.Index(fields=["lookup_id"], name="api_key_presented"),
        ]

    def __str__(self) -> str:
        return self.lookup_id


def filter_idle_keys(
    keys: QuerySet[ApiKey], *, unused_for: timedelta, now: datetime
) -> QuerySet[ApiKey]:
    """Return the active keys whose creation, rotation and last use are older than `unused_for`."""
    # Postgres' GREATEST ignores nulls.
    last_activity = Greatest("created_at", "issued_at", "last_used_at")
    return (
        keys.filter(make_active_condition(now))
        .annotate(last_activity_at=last_activity)
        .filter(last_activity_at__lt=now - unused_for)
    )


def make_active_condition(now: datetime) -> Q:
    """Return the condition of a key that is neither revoked nor expired."""
    return Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=now))
