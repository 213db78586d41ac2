"""Reads layers: what is said of whom, and what comes of it for one user."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from django.db.models import Max, OuterRef, Subquery

from caret.contracts.policy import PolicyLayer, TenantPolicy
from caret.contracts.policy_override import restrict_all
from caret.foundation.ids import TenantId, UserId
from caret.foundation.postgres.tenant_scope import tenant
from tenants.base.errors import NotFound
from tenants.base.pagination import Page, Place, page_of, read_cursor
from tenants.base.permissions import Permission
from tenants.models import Membership, PolicyLayerVersion, Team, TeamMembership
from tenants.policy.overrides.document import read_layer
from tenants.policy.queries import find_policy
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.erased_users import email_of, erased_among


class SubjectKind(StrEnum):
    TEAM = "team"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Subject:
    """Of whom something is said."""

    kind: SubjectKind
    id: UUID


@dataclass(frozen=True, slots=True)
class LayerInForce:
    subject: Subject
    name: str  # the team's, or the user's e-mail address
    version: int  # 0: nothing was ever said
    layer: PolicyLayer
    author_email: str | None  # None: no person, or one who was erased
    author_key: str  # "": no key
    reason: str
    created_at: datetime | None  # None: nothing was ever said


@dataclass(frozen=True, slots=True)
class Layers:
    """All that is in force in a tenant, and for whom."""

    of: dict[Subject, LayerInForce]
    teams_of: dict[UserId, tuple[UUID, ...]]  # members of teams only; in the teams' order

    def for_user(self, user_id: UserId) -> list[LayerInForce]:
        """His teams' first, his own last."""
        subjects = [
            *(Subject(SubjectKind.TEAM, team_id) for team_id in self.teams_of.get(user_id, ())),
            Subject(SubjectKind.USER, UUID(user_id)),
        ]
        return [self.of[subject] for subject in subjects if subject in self.of]

    def narrow(self, policy: TenantPolicy, user_id: UserId) -> TenantPolicy:
        return restrict_all(policy, (each.layer for each in self.for_user(user_id)))


def page_of_layers(*, actor: Actor, limit: int, cursor: str | None) -> Page[LayerInForce]:
    """Those in force, newest first. Raises Forbidden, Invalid."""
    actor.require(Permission.READ_LAYERS)
    after = read_cursor(cursor)
    found = read_layers(tenant_id=actor.tenant_id).of.values()
    places = sorted(((_place(each), each) for each in found), key=_by_place, reverse=True)
    left = [each for place, each in places if after is None or _at(place) < _at(after)]
    return page_of(left[: limit + 1], limit=limit, place=_place)


def _place(found: LayerInForce) -> Place:
    assert found.created_at is not None, "what is in force was said once"
    return Place(found.created_at, found.subject.id)


def _at(place: Place) -> tuple[datetime, UUID]:
    return place.at, place.id


def _by_place(pair: tuple[Place, LayerInForce]) -> tuple[datetime, UUID]:
    return _at(pair[0])


def find_layer(*, actor: Actor, subject: Subject) -> LayerInForce:
    """One of version 0 where nothing was ever said. Raises Forbidden, NotFound."""
    actor.require(Permission.READ_LAYERS)
    with tenant(actor.tenant_id):
        name = find_name(tenant_id=actor.tenant_id, subject=subject)
        rows = PolicyLayerVersion.objects.filter(
            tenant_id=actor.tenant_id, subject_kind=subject.kind, subject_id=subject.id
        )
        row = rows.select_related("author").order_by("-version").first()
        if row is None:
            return LayerInForce(subject, name, 0, PolicyLayer(), None, "", "", None)
        return _in_force(row, name, erased_among(actor.tenant_id, [row.author_id]))


def find_layer_version(*, actor: Actor, subject: Subject, version: int) -> PolicyLayer:
    """What a version said; of version 0 nothing. Raises Forbidden, NotFound."""
    actor.require(Permission.READ_LAYERS)
    if version == 0:
        return PolicyLayer()
    with tenant(actor.tenant_id):
        row = PolicyLayerVersion.objects.filter(
            tenant_id=actor.tenant_id,
            subject_kind=subject.kind,
            subject_id=subject.id,
            version=version,
        ).first()
    if row is None:
        raise NotFound("There is no such version.")
    return read_layer(row.document)


def effective_policy(*, tenant_id: TenantId, user_id: UserId) -> TenantPolicy:
    """For the platform itself: what holds for one user. Raises NotFound."""
    policy = find_policy(tenant_id=tenant_id).policy
    return read_layers(tenant_id=tenant_id).narrow(policy, user_id)


def read_layers(*, tenant_id: TenantId) -> Layers:
    """For the platform itself: asks no role. Those of teams and members that are gone, and those
    that were lifted, are left out. Five queries."""
    with tenant(tenant_id):
        teams = Team.objects.filter(tenant_id=tenant_id).values_list("id", "name")
        members = Membership.objects.filter(tenant_id=tenant_id, ended_at=None)
        people = members.values_list("user_id", "user__email")
        names = {Subject(SubjectKind.TEAM, id_): name for id_, name in teams} | {
            Subject(SubjectKind.USER, id_): email for id_, email in people
        }
        rows = list(_newest(tenant_id))
        erased = erased_among(tenant_id, [row.author_id for row in rows])
        teams_of = _teams_of(tenant_id)
    subjects = ((Subject(SubjectKind(row.subject_kind), row.subject_id), row) for row in rows)
    return Layers(
        of={
            subject: _in_force(row, names[subject], erased)
            for subject, row in subjects
            if subject in names and row.document
        },
        teams_of=teams_of,
    )


def find_name(*, tenant_id: TenantId, subject: Subject) -> str:
    """Inside the tenant's scope. Raises NotFound."""
    if subject.kind is SubjectKind.TEAM:
        rows = Team.objects.filter(tenant_id=tenant_id, id=subject.id)
        found = rows.values_list("name", flat=True).first()
    else:
        members = Membership.objects.filter(tenant_id=tenant_id, ended_at=None)
        emails = members.filter(user_id=subject.id).values_list("user__email", flat=True)
        found = emails.first()
    if found is None:
        raise NotFound("There is no such {kind}.", kind=subject.kind.value)
    return str(found)


def _newest(tenant_id: TenantId) -> list[PolicyLayerVersion]:
    of_tenant = PolicyLayerVersion.objects.filter(tenant_id=tenant_id)
    highest = (
        of_tenant.filter(subject_kind=OuterRef("subject_kind"), subject_id=OuterRef("subject_id"))
        .order_by()
        .values("subject_kind", "subject_id")
        .annotate(highest=Max("version"))
        .values("highest")
    )
    newest = of_tenant.filter(version=Subquery(highest)).select_related("author")
    return list(newest.order_by("subject_kind", "subject_id"))


def _teams_of(tenant_id: TenantId) -> dict[UserId, tuple[UUID, ...]]:
    teams: defaultdict[UserId, list[UUID]] = defaultdict(list)
    rows = TeamMembership.objects.filter(tenant_id=tenant_id).order_by("team_id")
    for user_id, team_id in rows.values_list("user_id", "team_id"):
        teams[UserId(str(user_id))].append(team_id)
    return {user_id: tuple(ids) for user_id, ids in teams.items()}


def _in_force(row: PolicyLayerVersion, name: str, erased: frozenset[UUID]) -> LayerInForce:
    return LayerInForce(
        subject=Subject(SubjectKind(row.subject_kind), row.subject_id),
        name=name,
        version=row.version,
        layer=read_layer(row.document),
        author_email=email_of(row.author, erased),
        author_key=row.author_key,
        reason=row.reason,
        created_at=row.created_at,
    )
