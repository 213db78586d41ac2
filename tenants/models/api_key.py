"""An API key: its digest, never its text. One that was rotated has two for a while."""

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


def inference() -> list[str]:
    return ["inference"]


class ApiKey(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid.uuid4, editable=False)
    lookup_id = models.CharField(max_length=8)
    digest = models.BinaryField()  # 32 bytes, see caret.contracts.api_key.digest_key
    pepper_version = models.PositiveSmallIntegerField()
    kind = models.CharField(max_length=8, choices=[(k.value, k.name) for k in KeyKind])
    # None: a service key. The migration binds (tenant_id, owner_id) to a membership.
    owner = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    # Who made it, and who was shown its present text: by a key, who was shown that key's. None: the
    # platform, or nobody noted it yet. The migration binds both to memberships.
    created_by = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    issued_by = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    name = models.CharField(max_length=120)
    scopes = ArrayField(models.CharField(max_length=40), default=inference)  # in order
    # From which it may be used; empty: from anywhere.
    networks = ArrayField(models.CharField(max_length=64), default=list)
    created_at = models.DateTimeField()
    # Of the present text, where it was rotated; None: it is the first one.
    issued_at = models.DateTimeField(null=True)
    # The text before, good until then; None: there is none.
    previous_digest = models.BinaryField(null=True)
    previous_pepper_version = models.PositiveSmallIntegerField(null=True)
    previous_ends_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)  # None: never
    revoked_at = models.DateTimeField(null=True)  # None: in force
    last_used_at = models.DateTimeField(null=True)  # to the minute; None: never used
    # The playground page creates a new key each time (tenants.identity.api_keys.playground).
    is_playground = models.BooleanField(db_default=False)
    leaked_at = models.DateTimeField(null=True)  # when somebody reported to have found it
    leak_notified_at = models.DateTimeField(null=True)  # when its owner was told of that

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
            # Reader: find_presented, which knows the lookup id and not yet the tenant.
            models.Index(fields=["lookup_id"], name="api_key_presented"),
        ]

    def __str__(self) -> str:
        return self.lookup_id


def idle_among(keys: QuerySet[ApiKey], *, unused_for: timedelta, now: datetime) -> QuerySet[ApiKey]:
    """Return the active keys that were neither created, rotated nor used for so long."""
    # Postgres' GREATEST ignores nulls.
    touched = Greatest("created_at", "issued_at", "last_used_at")
    return (
        keys.filter(active(now))
        .annotate(touched_at=touched)
        .filter(touched_at__lt=now - unused_for)
    )


def active(now: datetime) -> Q:
    """Return the condition of a key that is neither revoked nor expired."""
    return Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=now))
