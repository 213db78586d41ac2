"""Teams of a tenant's members. A member may be in several."""

import uuid
from typing import ClassVar

from django.db import models
from django.db.models.functions import Lower

from caret.foundation.postgres.row_security import RowSecurity
from tenants.models.tenant import Tenant
from tenants.models.user import User


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
    # The migration binds (tenant_id, team_id) to a team, whose deletion also deletes these rows,
    # and (tenant_id, user_id) to a membership.
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
