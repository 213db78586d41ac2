"""Wrapped encryption keys (see tenants.security.encryption).

The tables' names begin with `keyring_`, so that a backup of data can leave these tables out.
Otherwise the backup would still contain keys that are destroyed later. The application cannot
delete a row. Destroying a key empties the column with the wrapped key, and autovacuum then removes
the old version of the row. The migration makes autovacuum run promptly.
"""

import uuid
from typing import ClassVar

from django.db import models

from caret.foundation.postgres.row_security import Grants, RowSecurity
from tenants.models.tenant import Tenant

_CHANGED_NEVER_DELETED = ("SELECT", "INSERT", "UPDATE")


class RootKeyUse(models.Model):
    """A root key that has wrapped tenant keys. The key itself is in no database."""

    id = models.TextField(primary_key=True)  # as in tenants.security.encryption.root_keys.RootKey
    # A constant text, wrapped with this key (tenants.security.encryption.startup_check). Only this
    # key can unwrap it.
    canary = models.BinaryField()
    created_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True)  # None: tenant keys may be wrapped with it

    class Meta:
        db_table = "keyring_root_key"
        constraints: ClassVar = [
            Grants(
                name="root_key_use_grants",
                reason="at startup, before a tenant is known, a process checks that it has the root"
                " keys; no customer content",
                privileges=_CHANGED_NEVER_DELETED,
            )
        ]

    def __str__(self) -> str:
        return self.id


class TenantKey(models.Model):
    """A key that wraps the tenant's data keys.

    One key is in force; after an erasure of the whole tenant, none is. Rotation destroys retired
    keys.
    """

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid.uuid4, editable=False)
    root_key_id = models.TextField()  # the root key that wraps this key
    wrapped = models.BinaryField(null=True)  # None: destroyed
    fingerprint = models.BinaryField()  # envelope.compute_key_fingerprint
    created_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True)  # None: in force
    destroyed_at = models.DateTimeField(null=True)  # None: not destroyed

    class Meta:
        db_table = "keyring_tenant_key"
        constraints: ClassVar = [
            # Readers: key_creation and rotation, which look up the key in force.
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
    """A key that encrypts the data of one scope, such as `user:<id>/content`.

    After crypto-shredding of a scope, its new data gets a new key.
    """

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid.uuid4, editable=False)
    tenant_key_id = models.UUIDField()  # the key that wraps it; the migration adds the foreign key
    scope = models.TextField()
    wrapped = models.BinaryField(null=True)  # None: destroyed
    fingerprint = models.BinaryField()
    canary = models.BinaryField()  # sealed with the key, to prove later that the key is lost
    created_at = models.DateTimeField()
    destroyed_at = models.DateTimeField(null=True)  # None: not destroyed

    class Meta:
        db_table = "keyring_data_key"
        constraints: ClassVar = [
            # Reader: seal_in_scope.
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
            # Reader: rotation, which rewraps the keys of a retired tenant key.
            models.Index(
                fields=["tenant", "tenant_key_id"],
                condition=models.Q(destroyed_at=None),
                name="data_key_wrapped_by",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.id}"
