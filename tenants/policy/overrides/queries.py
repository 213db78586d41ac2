"""Queries of policy overrides and of the resulting policy of one user."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db.models import Exists, Q, QuerySet

from caret.contracts.policy import PolicyOverride, TenantPolicy
from caret.contracts.policy_override import apply_overrides
from caret.foundation.ids import TenantId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import NotFound
from tenants.base.pagination import Page, PagePosition, build_page, decode_cursor
from tenants.base.permissions import Permission
from tenants.models import Membership, PolicyOverrideVersion, PolicyVersion, Team, TeamMembership
from tenants.policy.document import parse_policy
from tenants.policy.overrides.document import parse_override
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.erased_users import find_erased_users, get_visible_email


class SubjectKind(StrEnum):
    TEAM = "team"
    USER = "user"


@dataclass(frozen=True, slots=True)
class OverrideSubject:
    """The team or the user that an override applies to."""

    kind: SubjectKind
    id: UUID


@dataclass(frozen=True, slots=True)
class OverrideInForce:
    """The newest version of the override of a team or user.

    `find_override` also returns an instance if no override is in force, because it was removed or
    never existed. The field `override` is then empty.
    """

    subject: OverrideSubject
    name: str  # the name of the team, or the e-mail address of the user
    version: int  # from 1; 0: no version exists
    override: PolicyOverride
    author_email: str | None  # None: no user, or an erased user
    author_key: str  # lookup ID; "": no key
    reason: str
    created_at: datetime | None  # None: no version exists


@dataclass(frozen=True, slots=True)
class PolicyOverrides:
    """All overrides in force in a tenant, with the teams of its members."""

    all: dict[OverrideSubject, OverrideInForce]
    teams_of: dict[UserId, tuple[UUID, ...]]  # sorted team IDs; without users who are in no team
    names: dict[OverrideSubject, str]  # of all teams and members

    def for_user(self, user_id: UserId) -> list[OverrideInForce]:
        """Return the overrides of the user's teams, then the user's own."""
        subjects = [
            *(
                OverrideSubject(SubjectKind.TEAM, team_id)
                for team_id in self.teams_of.get(user_id, ())
            ),
            OverrideSubject(SubjectKind.USER, UUID(user_id)),
        ]
        return [self.all[subject] for subject in subjects if subject in self.all]

    def apply(self, policy: TenantPolicy, user_id: UserId) -> TenantPolicy:
        """Return the effective policy of a user."""
        return apply_overrides(policy, (override.override for override in self.for_user(user_id)))


def list_overrides(*, actor: Actor, limit: int, cursor: str | None) -> Page[OverrideInForce]:
    """Return a page of the overrides in force, newest first. Raises Forbidden, InvalidValue."""
    actor.require(Permission.READ_OVERRIDES)
    after = decode_cursor(cursor)
    overrides = read_overrides(tenant_id=actor.tenant_id).all.values()
    newest_first = sorted(
        overrides, key=lambda override: _to_sort_key(_to_position(override)), reverse=True
    )
    remaining = [
        override
        for override in newest_first
        if after is None or _to_sort_key(_to_position(override)) < _to_sort_key(after)
    ]
    return build_page(remaining[: limit + 1], limit=limit, get_position=_to_position)


def _to_position(override: OverrideInForce) -> PagePosition:
    assert override.created_at is not None, "an override in force was created once"
    return PagePosition(override.created_at, override.subject.id)


def _to_sort_key(position: PagePosition) -> tuple[datetime, UUID]:
    return position.at, position.id


def find_override(*, actor: Actor, subject: OverrideSubject) -> OverrideInForce:
    """Return the override of a team or user.

    If the override was removed, return an empty override with the version of the removal. If there
    never was an override, return an empty one with version 0. Raises Forbidden, NotFound.
    """
    actor.require(Permission.READ_OVERRIDES)
    with tenant_scope(actor.tenant_id):
        name = find_subject_name(tenant_id=actor.tenant_id, subject=subject)
        rows = PolicyOverrideVersion.objects.filter(
            tenant_id=actor.tenant_id, subject_kind=subject.kind, subject_id=subject.id
        )
        row = rows.select_related("author").order_by("-version").first()
        if row is None:
            return OverrideInForce(
                subject=subject,
                name=name,
                version=0,
                override=PolicyOverride(),
                author_email=None,
                author_key="",
                reason="",
                created_at=None,
            )
        return _to_override_in_force(row, name, find_erased_users(actor.tenant_id, [row.author_id]))


def find_override_version(
    *, actor: Actor, subject: OverrideSubject, version: int
) -> PolicyOverride:
    """Return one version of an override; version 0 is empty. Raises Forbidden, NotFound."""
    actor.require(Permission.READ_OVERRIDES)
    if version == 0:
        return PolicyOverride()
    with tenant_scope(actor.tenant_id):
        row = PolicyOverrideVersion.objects.filter(
            tenant_id=actor.tenant_id,
            subject_kind=subject.kind,
            subject_id=subject.id,
            version=version,
        ).first()
    if row is None:
        raise NotFound("This version does not exist.")
    return parse_override(row.document)


def load_effective_policy(*, tenant_id: TenantId, user_id: UserId) -> TenantPolicy:
    """Return the effective policy of one user. Checks no permission.

    One query, and another one if the tenant has overrides. Raises NotFound.
    """
    with tenant_scope(tenant_id):
        versions = PolicyVersion.objects.filter(tenant_id=tenant_id).order_by("-version")
        overrides = PolicyOverrideVersion.objects.filter(tenant_id=tenant_id)
        row = versions.values_list("document", Exists(overrides)).first()
        if row is None:
            raise NotFound("The tenant has no policy.")
        document, has_any_override = row
        documents = _find_override_documents(tenant_id, user_id) if has_any_override else []
    return apply_overrides(parse_policy(document), map(parse_override, documents))


def _find_override_documents(tenant_id: TenantId, user_id: UserId) -> list[dict[str, Any]]:
    """Return the newest overrides of the user's teams, then the user's own."""
    memberships = TeamMembership.objects.filter(tenant_id=tenant_id, user_id=user_id)
    of_teams = Q(subject_kind=SubjectKind.TEAM, subject_id__in=memberships.values("team_id"))
    of_user = Q(subject_kind=SubjectKind.USER, subject_id=UUID(user_id))
    # _select_newest sorts by the kind of subject: "team" comes before "user".
    overrides = _select_newest(tenant_id).filter(of_teams | of_user)
    return list(overrides.values_list("document", flat=True))


def has_overrides(*, tenant_id: TenantId) -> bool:
    """Return whether an override was ever set. Must run inside the tenant's scope. One query."""
    return PolicyOverrideVersion.objects.filter(tenant_id=tenant_id).exists()


def read_overrides(*, tenant_id: TenantId) -> PolicyOverrides:
    """Return all overrides in force. Checks no permission. Up to five queries.

    Leaves out overrides that were removed, and those of deleted teams and former members.
    """
    with tenant_scope(tenant_id):
        teams = Team.objects.filter(tenant_id=tenant_id).values_list("id", "name")
        members = Membership.objects.filter(tenant_id=tenant_id, ended_at=None)
        people = members.values_list("user_id", "user__email")
        names = {OverrideSubject(SubjectKind.TEAM, id_): name for id_, name in teams} | {
            OverrideSubject(SubjectKind.USER, id_): email for id_, email in people
        }
        rows = list(_select_newest(tenant_id).select_related("author"))
        erased_ids = find_erased_users(tenant_id, [row.author_id for row in rows])
        teams_of = _find_teams_by_user(tenant_id)
    subjects = (
        (OverrideSubject(SubjectKind(row.subject_kind), row.subject_id), row) for row in rows
    )
    return PolicyOverrides(
        all={
            subject: _to_override_in_force(row, names[subject], erased_ids)
            for subject, row in subjects
            if subject in names and row.document  # an empty document: the override was removed
        },
        teams_of=teams_of,
        names=names,
    )


def find_subject_name(*, tenant_id: TenantId, subject: OverrideSubject) -> str:
    """Return the name of a team or a member. Raises NotFound.

    Must run inside the tenant's scope.
    """
    if subject.kind is SubjectKind.TEAM:
        rows = Team.objects.filter(tenant_id=tenant_id, id=subject.id)
        name = rows.values_list("name", flat=True).first()
    else:
        members = Membership.objects.filter(tenant_id=tenant_id, ended_at=None)
        emails = members.filter(user_id=subject.id).values_list("user__email", flat=True)
        name = emails.first()
    if name is None:
        raise missing_subject(subject)
    return str(name)


def missing_subject(subject: OverrideSubject) -> NotFound:
    """Return the error for a team or member that does not exist."""
    if subject.kind is SubjectKind.TEAM:
        return NotFound("This team does not exist.")
    return NotFound("This member does not exist.")


def _select_newest(tenant_id: TenantId) -> QuerySet[PolicyOverrideVersion]:
    """Select the newest version for each team and user, including removed overrides."""
    versions = PolicyOverrideVersion.objects.filter(tenant_id=tenant_id)
    newest_first = versions.order_by("subject_kind", "subject_id", "-version")
    return newest_first.distinct("subject_kind", "subject_id")


def _find_teams_by_user(tenant_id: TenantId) -> dict[UserId, tuple[UUID, ...]]:
    teams: defaultdict[UserId, list[UUID]] = defaultdict(list)
    rows = TeamMembership.objects.filter(tenant_id=tenant_id).order_by("team_id")
    for user_id, team_id in rows.values_list("user_id", "team_id"):
        teams[UserId(str(user_id))].append(team_id)
    return {user_id: tuple(ids) for user_id, ids in teams.items()}


def _to_override_in_force(
    row: PolicyOverrideVersion, name: str, erased_ids: frozenset[UUID]
) -> OverrideInForce:
    return OverrideInForce(
        subject=OverrideSubject(SubjectKind(row.subject_kind), row.subject_id),
        name=name,
        version=row.version,
        override=parse_override(row.document),
        author_email=get_visible_email(row.author, erased_ids),
        author_key=row.author_key,
        reason=row.reason,
        created_at=row.created_at,
    )
