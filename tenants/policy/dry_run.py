"""Previews policy changes, and explains the effective policies of members."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import or_

from django.db.models import Q

from caret.contracts.policy import PolicyOverride, TenantPolicy
from caret.contracts.policy_override import apply_overrides
from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Permission
from tenants.models import ApiKey
from tenants.models.api_key import filter_idle_keys
from tenants.policy.access_explanation import (
    AccessExplanation,
    AccessQuery,
    NamedOverride,
    explain_access,
)
from tenants.policy.diff import MemberPolicies, PolicyDiff, diff_policies
from tenants.policy.document import parse_policy
from tenants.policy.effective_policy import EffectivePolicy, resolve_policy
from tenants.policy.overrides.document import parse_override
from tenants.policy.overrides.queries import (
    OverrideInForce,
    OverrideSubject,
    PolicyOverrides,
    SubjectKind,
    missing_subject,
    read_overrides,
)
from tenants.policy.queries import PolicyVersionView, find_policy_in_force, load_active_policy
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.directory import MemberRow, list_members


@dataclass(frozen=True, slots=True)
class DryRun:
    difference: PolicyDiff
    has_member_details: bool  # whether the actor may see which members are affected
    # The number of API keys that never expire, or expire after the end of the new maximum lifetime.
    # They stay valid. 0 if the change leaves the maximum lifetime as it is.
    keys_beyond_lifetime: int
    keys_to_be_revoked: int  # the number of idle API keys, which a task revokes within the hour


def preview_policy(
    *, actor: Actor, document: object, now: datetime, before: TenantPolicy | None = None
) -> DryRun:
    """Preview the effect of a new policy. Raises Forbidden, InvalidValue.

    `before` is the policy in force; None: it is read.
    """
    actor.require(Permission.WRITE_POLICY)
    after = parse_policy(document)
    with tenant_scope(actor.tenant_id):
        before = before or load_active_policy(tenant_id=actor.tenant_id)
        overrides = read_overrides(tenant_id=actor.tenant_id)
        members = list_members(tenant_id=actor.tenant_id)
        num_beyond_lifetime = (
            0
            if after.max_key_lifetime_days == before.max_key_lifetime_days
            else _count_keys_beyond_lifetime(actor, after, now)
        )
        num_idle = _count_idle_keys(actor, after, now)
    member_policies = (
        MemberPolicies(
            member.email,
            overrides.apply(before, member.user_id),
            overrides.apply(after, member.user_id),
        )
        for member in members
    )
    return DryRun(
        diff_policies(member_policies),
        _can_see_members(actor),
        keys_beyond_lifetime=num_beyond_lifetime,
        keys_to_be_revoked=num_idle,
    )


def preview_override_change(
    *, actor: Actor, subject: OverrideSubject, document: object, now: datetime
) -> DryRun:
    """Preview the effect of an override for a team or a user.

    No keys are to be revoked: an override cannot set `revoke_idle_keys_after_days`. Raises
    Forbidden, InvalidValue, NotFound.
    """
    actor.require(Permission.WRITE_POLICY)
    override = parse_override(document)
    with tenant_scope(actor.tenant_id):
        policy = load_active_policy(tenant_id=actor.tenant_id)
        overrides = read_overrides(tenant_id=actor.tenant_id)
        members = list_members(tenant_id=actor.tenant_id)
    if subject not in overrides.names:
        raise missing_subject(subject)
    policies = {
        member.user_id: _apply_override(member, policy, overrides, (subject, override))
        for member in members
    }
    policies_with_new_lifetime = {
        user_id: member.after
        for user_id, member in policies.items()
        if member.after.max_key_lifetime_days != member.before.max_key_lifetime_days
    }
    return DryRun(
        diff_policies(policies.values()),
        _can_see_members(actor),
        keys_beyond_lifetime=_count_members_keys_beyond_lifetime(
            actor, policies_with_new_lifetime, now
        ),
        keys_to_be_revoked=0,
    )


def explain_access_for(
    *, actor: Actor, email: str | None, access_query: AccessQuery
) -> AccessExplanation:
    """Explain whether the policy allows a request of the member with the address `email`.

    `email` None: the actor. For another member, the actor needs READ_OVERRIDES. Raises Forbidden,
    InvalidValue.
    """
    policy, overrides = _read_policy_and_overrides(actor, email)
    return explain_access(policy.policy, overrides, access_query, policy.version)


def find_effective_policy(*, actor: Actor, email: str | None) -> EffectivePolicy:
    """Return the effective policy of a member, with the overrides that decide its fields.

    `email` None: the actor. For another member, the actor needs READ_OVERRIDES. Raises Forbidden,
    InvalidValue.
    """
    policy, overrides = _read_policy_and_overrides(actor, email)
    return resolve_policy(policy.policy, overrides)


def name_overrides(overrides: Iterable[OverrideInForce]) -> list[NamedOverride]:
    """Return the overrides with names such as "team:Platform"."""
    return [
        NamedOverride(
            f"{in_force.subject.kind}:{in_force.name}", in_force.override, in_force.version
        )
        for in_force in overrides
    ]


def _read_policy_and_overrides(
    actor: Actor, email: str | None
) -> tuple[PolicyVersionView, list[NamedOverride]]:
    """Read the policy, and the overrides for a member. `email` None: the actor."""
    actor.require(Permission.READ_POLICY)
    with tenant_scope(actor.tenant_id):
        user_id = actor.user_id if email is None else _find_member(actor, email).user_id
        if user_id != actor.user_id:
            actor.require(Permission.READ_OVERRIDES)
        policy = find_policy_in_force(tenant_id=actor.tenant_id)
        overrides = (
            [] if user_id is None else read_overrides(tenant_id=actor.tenant_id).for_user(user_id)
        )
    return policy, name_overrides(overrides)


def _find_member(actor: Actor, email: str) -> MemberRow:
    """Return the member with the e-mail address.

    Only an actor with READ_OVERRIDES learns whether another user is a member. Raises Forbidden,
    InvalidValue.
    """
    members = list_members(tenant_id=actor.tenant_id)
    matches = [member for member in members if member.email == email.strip().lower()]
    if not matches or matches[0].user_id != actor.user_id:
        actor.require(Permission.READ_OVERRIDES)
    if not matches:
        raise InvalidValue("user_email", "This user is not a member of the tenant.")
    return matches[0]


def _apply_override(
    member: MemberRow,
    policy: TenantPolicy,
    overrides: PolicyOverrides,
    subject_and_override: tuple[OverrideSubject, PolicyOverride],
) -> MemberPolicies:
    """Return a member's effective policies before and after the subject gets the override."""
    subject, new_override = subject_and_override
    before = overrides.apply(policy, member.user_id)
    if not _applies_to(subject, member.user_id, overrides):
        return MemberPolicies(member.email, before, before)
    own_overrides = overrides.for_user(member.user_id)
    other_overrides = (
        in_force.override for in_force in own_overrides if in_force.subject != subject
    )
    return MemberPolicies(
        member.email, before, apply_overrides(policy, (*other_overrides, new_override))
    )


def _applies_to(subject: OverrideSubject, user_id: UserId, overrides: PolicyOverrides) -> bool:
    if subject.kind is SubjectKind.TEAM:
        return subject.id in overrides.teams_of.get(user_id, ())
    return str(subject.id) == user_id


def _count_keys_beyond_lifetime(actor: Actor, policy: TenantPolicy, now: datetime) -> int:
    if policy.max_key_lifetime_days is None:
        return 0
    keys = ApiKey.objects.filter(tenant_id=actor.tenant_id, revoked_at=None)
    return keys.filter(_make_lifetime_condition(policy.max_key_lifetime_days, now)).count()


def _count_members_keys_beyond_lifetime(
    actor: Actor, policies: Mapping[UserId, TenantPolicy], now: datetime
) -> int:
    """Count the members' own API keys beyond the lifetime that their effective policy allows."""
    owners_by_max_days = defaultdict[int, list[UserId]](list)
    for user_id, policy in policies.items():
        if policy.max_key_lifetime_days is not None:
            owners_by_max_days[policy.max_key_lifetime_days].append(user_id)
    conditions = [
        Q(owner_id__in=user_ids) & _make_lifetime_condition(max_days, now)
        for max_days, user_ids in owners_by_max_days.items()
    ]
    if not conditions:
        return 0
    with tenant_scope(actor.tenant_id):
        keys = ApiKey.objects.filter(tenant_id=actor.tenant_id, revoked_at=None)
        return keys.filter(reduce(or_, conditions)).count()


def _make_lifetime_condition(max_days: int, now: datetime) -> Q:
    """Return the condition of a key that never expires, or only after more than `max_days`."""
    return Q(expires_at=None) | Q(expires_at__gt=now + timedelta(days=max_days))


def _count_idle_keys(actor: Actor, policy: TenantPolicy, now: datetime) -> int:
    days = policy.revoke_idle_keys_after_days
    if days is None:
        return 0
    keys = ApiKey.objects.filter(tenant_id=actor.tenant_id)
    return filter_idle_keys(keys, unused_for=timedelta(days=days), now=now).count()


def _can_see_members(actor: Actor) -> bool:
    return actor.has_permission(Permission.READ_MEMBERS)
