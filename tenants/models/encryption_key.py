"""Wrapped keys (see tenants.security.encryption). What opens nothing any more stays as a tombstone.

The tables' names begin with `keyring_`, so that a backup of data can leave them out: a key that was
destroyed would come back with it. Nobody may delete a row, and an UPDATE leaves the old one to
autovacuum, which the migration makes prompt.
"""

import uuid
from typing import ClassVar

from django.db import models

from caret.foundation.postgres.row_security import Grants, RowSecurity
from tenants.models.tenant import Tenant

_CHANGED_NEVER_DELETED = ("SELECT", "INSERT", "UPDATE")


class RootKeyUse(models.Model):
    """A root key that has wrapped tenants' keys; the key itself is in no database."""

    id = models.TextField(
        primary_key=True
    )  # as tenants.security.encryption.root_keys.RootKey has it
    canary = models.BinaryField()  # wrapped by it: who opens this has the key
    created_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True)  # None: it wraps some tenant's key

    class Meta:
        db_table = "keyring_root_key"
        constraints: ClassVar = [
            Grants(
                name="root_key_use_grants",
                reason="a process looks at its start, before a tenant is chosen, whether it has the"
                " root keys; no customer content",
                privileges=_CHANGED_NEVER_DELETED,
            )
        ]

    def __str__(self) -> str:
        return self.id


class TenantKey(models.Model):
    """Wraps the tenant's data keys. One is in force; retired ones are on their way out."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid.uuid4, editable=False)
    root_key_id = models.TextField()
    wrapped = models.BinaryField(null=True)  # None: destroyed
    fingerprint = models.BinaryField()
    created_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True)  # None: in force
    destroyed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "keyring_tenant_key"
        constraints: ClassVar = [
            # Reader: operations, for the one in force.
            models.UniqueConstraint(
                fields=["tenant"],
                condition=models.Q(retired_at=None),
                name="tenant_key_one_in_force",
            ),
            models.CheckConstraint(
                condition=models.Q(wrapped=None, destroyed_at__isnull=False)
                | models.Q(wrapped__isnull=False, destroyed_at=None),
                name="tenant_key_destroyed_or_wrapped",
            ),
            models.CheckConstraint(
                condition=models.Q(destroyed_at=None) | models.Q(retired_at__isnull=False),
                name="tenant_key_destroyed_is_retired",
            ),
            RowSecurity(name="tenant_key_tenant", privileges=_CHANGED_NEVER_DELETED),
        ]

    def __str__(self) -> str:
        return str(self.id)


class DataKey(models.Model):
    """Seals the data of one scope, such as `user:<id>`. After shredding a scope gets a new one."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid.uuid4, editable=False)
    tenant_key_id = models.UUIDField()  # the migration binds (tenant_id, tenant_key_id)
    scope = models.TextField()
    wrapped = models.BinaryField(null=True)  # None: destroyed
    fingerprint = models.BinaryField()
    witness = models.BinaryField()  # sealed with it; kept to show that nothing opens it any more
    created_at = models.DateTimeField()
    destroyed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "keyring_data_key"
        constraints: ClassVar = [
            # Reader: seal_for.
            models.UniqueConstraint(
                fields=["tenant", "scope"],
                condition=models.Q(destroyed_at=None),
                name="data_key_one_of_scope",
            ),
            models.CheckConstraint(
                condition=models.Q(wrapped=None, destroyed_at__isnull=False)
                | models.Q(wrapped__isnull=False, destroyed_at=None),
                name="data_key_destroyed_or_wrapped",
            ),
            RowSecurity(name="data_key_tenant", privileges=_CHANGED_NEVER_DELETED),
        ]
        indexes: ClassVar = [
            # Reader: rotation, which rewraps what a retired tenant key has wrapped.
            models.Index(
                fields=["tenant", "tenant_key_id"],
                condition=models.Q(destroyed_at=None),
                name="data_key_wrapped_by",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.id}"
