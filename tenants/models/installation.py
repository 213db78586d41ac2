"""The installation: its models, their evaluations, tenants' pools, and gateways' capabilities."""

from typing import ClassVar

from django.db import models

from caret.contracts.policy import ANY_LANGUAGE, Tier
from caret.foundation.ids import uuid7
from caret.foundation.postgres.row_security import APPEND_ONLY, READ_WRITE, Grants
from tenants.models.tenant import Tenant

_TIERS: list[tuple[str, str]] = [(tier.value, tier.name) for tier in Tier]


class CatalogModel(models.Model):
    """A model that operators have published, or withdrawn, in one tier."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=128)  # as engines, requests and policies name it
    tier = models.CharField(max_length=8, choices=_TIERS)
    title = models.CharField(max_length=120)  # the name that people see
    pools = models.JSONField()  # names of the pools that serve it, preferred ones first
    plans = models.JSONField()  # slugs of the plans that include it; empty: all plans
    # In the tier's list of models, ascending. The first model that the tenant may use is its
    # default, unless the policy names a default model or operators have assigned a pool.
    position = models.PositiveSmallIntegerField()
    is_published = models.BooleanField()  # False: no tenant can use it
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta:
        db_table = "tenants_catalog_model"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tier", "name"], name="catalog_model_once"),
            Grants(
                name="catalog_model_grants",
                reason="the platform's list of models belongs to no tenant",
                privileges=READ_WRITE,
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.tier})"


class PoolAssignment(models.Model):
    """The pool that serves a tenant in one tier, for all languages or for one."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # Not named `tenant`, because the table has no row security: only a query over all tenants can
    # check that no pool is dedicated to two of them.
    holder = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    tier = models.CharField(max_length=8, choices=_TIERS)
    language = models.CharField(max_length=40, default=ANY_LANGUAGE)
    pool = models.CharField(max_length=120)  # as the gateways' pools file names it
    is_dedicated = models.BooleanField(default=False)  # no other tenant may use the pool
    created_at = models.DateTimeField()

    class Meta:
        db_table = "tenants_pool_assignment"
        constraints: ClassVar = [
            # Reader: the assignments of a tenant.
            models.UniqueConstraint(
                fields=["holder", "tier", "language"], name="pool_assignment_once"
            ),
            Grants(
                name="pool_assignment_grants",
                reason="dedicated pools are found over all tenants; only operators read the names",
                privileges=READ_WRITE,
            ),
        ]

    def __str__(self) -> str:
        return f"{self.holder_id} {self.tier} {self.language}: {self.pool}"


class Evaluation(models.Model):
    """A report of `manage.py evaluate`: scores of one or two pools."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    title = models.CharField(max_length=120)
    report = models.JSONField()  # tenants.fleet.evaluations.EvaluationReport
    created_at = models.DateTimeField()

    class Meta:
        db_table = "tenants_evaluation"
        constraints: ClassVar = [
            Grants(
                name="evaluation_grants",
                reason="scores of the installation's pools on an operator's code; no tenant's data",
                privileges=APPEND_ONLY,
            ),
        ]
        indexes: ClassVar = [
            # Reader: the list of evaluations, newest first.
            models.Index(fields=["-created_at", "-id"], name="evaluation_newest"),
        ]

    def __str__(self) -> str:
        return self.title


class CapabilityChange(models.Model):
    """A change of a capability of the gateways. For each capability, the newest one is in force."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # A Capability, or REGION_PREFIX and a region (see tenants.policy.availability.enforcement).
    capability = models.CharField(max_length=64)
    is_available = models.BooleanField()
    since = models.DateTimeField()

    class Meta:
        db_table = "tenants_capability_change"
        constraints: ClassVar = [
            # Reader: the newest change of each capability.
            models.UniqueConstraint(fields=["capability", "since"], name="capability_change_once"),
            Grants(
                name="capability_change_grants",
                reason="describes the installation, not a tenant",
                privileges=APPEND_ONLY,
            ),
        ]

    def __str__(self) -> str:
        return f"{self.capability}: {self.is_available}"
