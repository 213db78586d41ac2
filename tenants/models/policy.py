"""Versions of a tenant's policy and of its overrides. The highest version is in force."""

from typing import ClassVar

from django.db import models

from caret.foundation.ids import uuid7
from caret.foundation.postgres.row_security import APPEND_ONLY, RowSecurity
from tenants.models.erasure import allow_deletion_after_shredding
from tenants.models.tenant import Tenant
from tenants.models.user import User


class PolicyVersion(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "version")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    version = models.PositiveIntegerField()  # from 1, without gaps
    document = models.JSONField()  # a caret.contracts.policy.TenantPolicy
    # None: the platform, an operator, or a key without an owner.
    author = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    # Lookup ID of the key that was used; "": no key. The database default is for processes of the
    # previous release, which insert rows without this column.
    author_key = models.CharField(max_length=40, default="", db_default="")
    reason = models.TextField()
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            RowSecurity(name="policy_version_tenant", privileges=APPEND_ONLY),
            allow_deletion_after_shredding("policy_version_shredded", "tenants_policyversion"),
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id} v{self.version}"


class PolicyOverrideVersion(models.Model):
    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(default=uuid7, editable=False)  # ordered by time
    subject_kind = models.CharField(max_length=8)  # tenants.policy.overrides.queries.SubjectKind
    # A team or a user. No foreign key, because versions outlive a deleted team.
    subject_id = models.UUIDField()
    version = models.PositiveIntegerField()  # from 1, per subject; the highest is in force
    document = models.JSONField()  # a caret.contracts.policy.PolicyOverride; {}: removed
    # None: the platform, an operator, or a key without an owner.
    author = models.ForeignKey(
        User, null=True, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    author_key = models.CharField(max_length=40)  # lookup ID of the key that was used; "": no key
    reason = models.TextField()
    created_at = models.DateTimeField()

    class Meta:
        db_table = "tenants_policy_override_version"
        # "policy_layer" is an earlier name of overrides. New names would need a migration.
        constraints: ClassVar = [
            # `read_overrides` uses the index of this constraint.
            models.UniqueConstraint(
                fields=["tenant", "subject_kind", "subject_id", "version"],
                name="policy_layer_version_once",
            ),
            RowSecurity(name="policy_layer_version_tenant", privileges=APPEND_ONLY),
            allow_deletion_after_shredding(
                "policy_layer_version_shredded", "tenants_policy_override_version"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject_kind} {self.subject_id} v{self.version}"
