"""Directory of members for access reviews: teams, sign-in methods, last use.

A user may be a member of several tenants. A tenant must not see the user's activity in another
tenant. So the last use of a member is the last use of one of their keys in this tenant, and not
their last sign-in.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from allauth.mfa.models import Authenticator
from django.db.models import Exists, Max, OuterRef, Subquery

from caret.foundation.ids import TenantId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.pagination import Page
from tenants.base.permissions import Role
from tenants.identity.members.queries import read_page_of_members
from tenants.models import ApiKey, Domain, IdentityProvider, Team, TeamMembership, User
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.directory import MemberRow

PASSWORD, PROVIDER = "password", "identity provider"  # sign-in methods


@dataclass(frozen=True, slots=True)
class MemberDirectoryRow:
    user_id: UserId
    email: str
    name: str
    role: Role
    teams: tuple[str, ...]  # names, sorted
    signs_in_by: tuple[str, ...]  # password or identity provider, and kinds of second factors
    created_at: datetime  # since when the user is a member
    last_seen_at: datetime | None  # last use of one of the member's keys; None: never


@dataclass(frozen=True, slots=True)
class _MemberFacts:
    """Details of members, by user ID."""

    teams: dict[UUID, list[str]]  # names
    factors: dict[UUID, list[str]]  # kinds of second factors, without recovery codes
    with_password: frozenset[UUID]  # users who have a usable password
    last_seen_at: dict[UUID, datetime | None]  # as in MemberDirectoryRow
    # E-mail domains whose users sign in with the tenant's identity provider.
    provider_domains: frozenset[str]


def read_page_of_directory(
    *, actor: Actor, limit: int, cursor: str | None
) -> Page[MemberDirectoryRow]:
    """Return a page of members with details. Five queries. Raises Forbidden, InvalidValue."""
    page = read_page_of_members(actor=actor, limit=limit, cursor=cursor)
    return Page(build_directory_rows(actor.tenant_id, page.rows), page.next_cursor)


def build_directory_rows(
    tenant_id: TenantId, members: Sequence[MemberRow]
) -> list[MemberDirectoryRow]:
    """Add details to members. Four queries. The caller has checked the permission."""
    with tenant_scope(tenant_id):
        facts = _read_member_facts(tenant_id, [UUID(row.user_id) for row in members])
    return [_to_row(row, facts) for row in members]


def _read_member_facts(tenant_id: TenantId, user_ids: list[UUID]) -> _MemberFacts:
    keys = ApiKey.objects.filter(tenant_id=tenant_id, owner_id=OuterRef("id")).order_by()
    # For each owner, the last use of any of the owner's keys.
    last_used_at = keys.values("owner_id").annotate(seen=Max("last_used_at")).values("seen")
    accounts = User.objects.filter(id__in=user_ids).annotate(seen_at=Subquery(last_used_at))
    return _MemberFacts(
        teams=_find_teams(tenant_id, user_ids),
        factors=_group_pairs(
            Authenticator.objects.filter(user_id__in=user_ids)
            .exclude(type=Authenticator.Type.RECOVERY_CODES)
            .order_by("type")
            .values_list("user_id", "type")
        ),
        with_password=frozenset(user.id for user in accounts if user.has_usable_password()),
        last_seen_at={user.id: user.seen_at for user in accounts},
        provider_domains=_list_provider_domains(tenant_id),
    )


def _find_teams(tenant_id: TenantId, user_ids: list[UUID]) -> dict[UUID, list[str]]:
    # A sub-query is needed, because the model has no foreign key to the team.
    team_names = Team.objects.filter(tenant_id=tenant_id, id=OuterRef("team_id")).values("name")
    memberships = TeamMembership.objects.filter(tenant_id=tenant_id, user_id__in=user_ids)
    pairs = memberships.annotate(team_name=Subquery(team_names)).order_by("user_id", "team_id")
    return _group_pairs(pairs.values_list("user_id", "team_name"))


def _list_provider_domains(tenant_id: TenantId) -> frozenset[str]:
    providers = IdentityProvider.objects.filter(tenant_id=tenant_id)
    verified = Domain.objects.filter(
        Exists(providers), tenant_id=tenant_id, verified_at__isnull=False
    )
    return frozenset(verified.values_list("name", flat=True))


def _group_pairs(pairs: Iterable[tuple[UUID, str]]) -> dict[UUID, list[str]]:
    names_by_user = defaultdict[UUID, list[str]](list)
    for user_id, name in pairs:
        names_by_user[user_id].append(name)
    return names_by_user


def _to_row(member: MemberRow, facts: _MemberFacts) -> MemberDirectoryRow:
    user_id = UUID(member.user_id)
    return MemberDirectoryRow(
        user_id=member.user_id,
        email=member.email,
        name=member.name,
        role=member.role,
        teams=tuple(sorted(facts.teams.get(user_id, ()))),
        signs_in_by=_list_sign_in_methods(member.email, user_id, facts),
        created_at=member.created_at,
        last_seen_at=facts.last_seen_at.get(user_id),
    )


def _list_sign_in_methods(email: str, user_id: UUID, facts: _MemberFacts) -> tuple[str, ...]:
    """Return a member's sign-in methods: the first step, and the kinds of second factors.

    The first step is the identity provider if the address is in one of its domains. The member then
    cannot sign in with a password. Otherwise, it is the password if the member has one.
    """
    factors = facts.factors.get(user_id, [])
    if email.rpartition("@")[2] in facts.provider_domains:
        return (PROVIDER, *factors)
    return (PASSWORD, *factors) if user_id in facts.with_password else tuple(factors)
