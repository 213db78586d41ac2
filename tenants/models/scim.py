"""SCIM tokens, and users and groups as identity providers have described them."""

import uuid
from typing import ClassVar

from django.db import models
from django.db.models.functions import Lower

from caret.foundation.postgres.row_security import RowSecurity
from tenants.base.permissions import Role
from tenants.models.tenant import Tenant
from tenants.models.user import User


class ScimToken(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=120)
    digest = models.BinaryField()  # 32 bytes, see tenants.base.bearer_tokens
    created_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)  # None: in force
    last_used_at = models.DateTimeField(null=True)  # to the minute; None: never used

    class Meta:
        db_table = "tenants_scim_token"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "digest"], name="scim_token_digest"),
            RowSecurity(name="scim_token_tenant", privileges=("SELECT", "INSERT", "UPDATE")),
        ]

    def __str__(self) -> str:
        return self.name


class ScimUser(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid.uuid4, editable=False)
    # The account; None: no account yet, because the tenant has not verified the domain of the
    # e-mail address.
    user = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    user_name = models.CharField(max_length=254)
    external_id = models.CharField(max_length=254)  # "": none
    email = models.CharField(max_length=254)  # lower case; "": none
    active = models.BooleanField()  # False: the user is not a member
    # tenants.identity.scim.resources.User, without `id`, `meta` and `groups`.
    document = models.JSONField()
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta:
        db_table = "tenants_scim_user"
        constraints: ClassVar = [
            models.UniqueConstraint("tenant", Lower("user_name"), name="scim_user_name"),
            models.UniqueConstraint(fields=["tenant", "user"], name="scim_user_account"),
            RowSecurity(name="scim_user_tenant"),
        ]
        indexes: ClassVar = [
            # Reader: the SCIM filter by externalId.
            models.Index(fields=["tenant", "external_id"], name="scim_user_external"),
            # Readers: sync_domain_members, and the erasure of a user.
            models.Index(fields=["tenant", "email"], name="scim_user_email"),
        ]

    def __str__(self) -> str:
        return self.user_name


class ScimGroup(models.Model):
    """A team that an identity provider manages. The team's row contains the name."""

    pk = models.CompositePrimaryKey("tenant_id", "team_id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    team_id = models.UUIDField()  # deleted with the team (foreign key in the migration)
    external_id = models.CharField(max_length=254)  # "": none
    # The role that the group sets for its members; "": none.
    role = models.CharField(max_length=16, choices=[(r.value, r.name) for r in Role])
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta:
        db_table = "tenants_scim_group"
        constraints: ClassVar = [RowSecurity(name="scim_group_tenant")]

    def __str__(self) -> str:
        return str(self.team_id)


class ScimGroupMember(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "team_id", "scim_user_id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    team_id = models.UUIDField()  # deleted with the group (foreign key in the migration)
    scim_user_id = models.UUIDField()  # deleted with the ScimUser (foreign key in the migration)

    class Meta:
        db_table = "tenants_scim_group_member"
        constraints: ClassVar = [
            RowSecurity(name="scim_group_member_tenant", privileges=("SELECT", "INSERT", "DELETE"))
        ]
        indexes: ClassVar = [
            # Readers: groups of one user, and the foreign key to the user.
            models.Index(fields=["tenant", "scim_user_id"], name="scim_group_member_user"),
        ]

    def __str__(self) -> str:
        return f"{self.scim_user_id} is in {self.team_id}"
