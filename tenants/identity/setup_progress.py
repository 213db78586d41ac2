"""Finds the steps of the setup that a tenant has completed, for the console."""

from dataclasses import dataclass

from django.db.models import Exists, Q, QuerySet

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Permission
from tenants.identity.api_keys.queries import select_visible_keys
from tenants.models import ApiKey, Membership, RetentionRule, Tenant
from tenants.security.authorization.actor import Actor


@dataclass(frozen=True, slots=True)
class SetupProgress:
    # The first three fields consider only keys that the actor may see, including expired and
    # revoked ones.
    has_key: bool  # apart from playground keys
    has_started_playground: bool  # a playground was started
    has_used_key: bool  # a key was used, apart from playground keys
    # False also if the actor may not see the members.
    has_other_members: bool
    # A retention period was ever set. False also if the actor may not see the periods.
    has_retention_period: bool


def read_setup_progress(*, actor: Actor) -> SetupProgress:
    """Return the completed steps. One query. Raises Forbidden."""
    keys = select_visible_keys(actor)
    is_not_playground = Q(is_playground=False)
    members = Membership.objects.filter(tenant_id=actor.tenant_id, ended_at__isnull=True)
    rules = RetentionRule.objects.filter(tenant_id=actor.tenant_id)
    if actor.user_id is not None:
        members = members.exclude(user_id=actor.user_id)
    if not actor.has_permission(Permission.READ_MEMBERS):
        members = members.none()
    if not actor.has_permission(Permission.READ_RETENTION):
        rules = rules.none()
    steps: dict[str, QuerySet[ApiKey] | QuerySet[Membership] | QuerySet[RetentionRule]] = {
        "has_key": keys.filter(is_not_playground),
        "has_started_playground": keys.filter(is_playground=True),
        "has_used_key": keys.filter(is_not_playground, last_used_at__isnull=False),
        "has_other_members": members,
        "has_retention_period": rules,
    }
    with tenant_scope(actor.tenant_id):
        tenant = Tenant.objects.annotate(**{name: Exists(rows) for name, rows in steps.items()})
        return SetupProgress(**tenant.values(*steps).get(id=actor.tenant_id))
