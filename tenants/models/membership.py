"""Members of a tenant: memberships, teams and invitations."""

import uuid
from typing import ClassVar

from django.db import models
from django.db.models.functions import Lower

from caret.foundation.postgres.row_security import RowSecurity
from tenants.base.permissions import Role
from tenants.models.tenant import Tenant
from tenants.models.user import User


class Membership(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "user_id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    # Indexed by Django; read by find_memberships, which knows the user and not yet the tenant.
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    role = models.CharField(max_length=16, choices=[(r.value, r.name) for r in Role])
    created_at = models.DateTimeField()
    # None: a current member. The row of a former member stays, because API keys and audit entries
    # refer to it. A member who returns gets the same row.
    ended_at = models.DateTimeField(null=True)
    # When the user's data in this tenant was erased; None: not erased. The last erasure also
    # anonymizes the account, so each erasure reads this column of the user's other memberships.
    erased_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            RowSecurity(
                name="membership_tenant",
                privileges=("SELECT", "INSERT", "UPDATE"),
                user_column="user_id",
            )
        ]

    def __str__(self) -> str:
        return f"{self.user_id} is {self.role} of {self.tenant_id}"


class Team(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=120)
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint("tenant", Lower("name"), name="team_name"),
            RowSecurity(name="team_tenant"),
        ]

    def __str__(self) -> str:
        return self.name


class TeamMembership(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "team_id", "user_id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    # The migration adds two foreign keys: from (tenant_id, team_id) to a team, whose deletion also
    # deletes these rows, and from (tenant_id, user_id) to a membership.
    team_id = models.UUIDField()
    user = models.ForeignKey(User, on_delete=models.PROTECT, db_index=False, related_name="+")
    created_at = models.DateTimeField()

    class Meta:
        db_table = "tenants_team_membership"
        constraints: ClassVar = [
            RowSecurity(name="team_membership_tenant", privileges=("SELECT", "INSERT", "DELETE"))
        ]
        indexes: ClassVar = [
            # Readers: teams of one member, and the foreign key to the membership.
            models.Index(fields=["tenant", "user"], name="team_membership_user"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} is in {self.team_id}"


class Invitation(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid.uuid4, editable=False)
    email = models.EmailField(max_length=254)  # lower case
    role = models.CharField(max_length=16, choices=[(r.value, r.name) for r in Role])
    # The team to join; None: no team. There is no foreign key, because the team may be deleted
    # before the invitation is accepted.
    team_id = models.UUIDField(null=True)
    digest = models.BinaryField()  # 32 bytes, see tenants.base.bearer_tokens
    # None: the platform, an operator, or a key without an owner.
    invited_by = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    mailed_at = models.DateTimeField(null=True)  # None: not sent
    accepted_at = models.DateTimeField(null=True)  # None: not accepted
    revoked_at = models.DateTimeField(null=True)  # None: not revoked

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "digest"], name="invitation_digest"),
            RowSecurity(name="invitation_tenant", privileges=("SELECT", "INSERT", "UPDATE")),
        ]

    def __str__(self) -> str:
        return f"{self.email} as {self.role}"
