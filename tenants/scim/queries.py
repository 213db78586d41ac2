"""Reads what SCIM has told us, as SCIM resources."""

import json
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from django.conf import settings
from django.db.models import Model, QuerySet
from scim2_models import GroupMembership, Meta, Reference, Resource, SearchRequest, TooManyException
from scim2_models.path import CompareOperator, Comparison

from caret.foundation.postgres.tenancy import tenant
from tenants.errors import NotFound
from tenants.members.actor import Actor
from tenants.members.permissions import Permission, Role
from tenants.models import ScimGroup, ScimGroupMember, ScimUser, Team
from tenants.scim.resources import Group, GroupMember, User, etag_of

MAX_RESULTS: Final = 200
# Looked through one by one, for filters that no index knows and for sorting: 0.3 ms each.
MAX_SEARCHED: Final = 5_000
_MAX_START: Final = 10**9  # Postgres takes no offset of more than 64 bits
_Found = TypeVar("_Found", bound=Resource[Any])
_Row = TypeVar("_Row", bound=Model)
# What identity providers look up by; other filters are tried on each of the tenant's resources.
_USER_COLUMNS: Final = {
    "username": "user_name__iexact",
    "externalid": "external_id",
    "id": "id",
}
_ID_COLUMNS: Final = ("id", "team_id")
_GROUP_COLUMNS: Final = {"externalid": "external_id", "id": "team_id"}


@dataclass(frozen=True, slots=True)
class Found(Generic[_Found]):
    resources: list[_Found]
    total: int
    start: int  # from 1


def list_users(*, actor: Actor, search: SearchRequest[User]) -> Found[User]:
    """Raises TooManyException."""
    with tenant(actor.tenant_id):
        rows = ScimUser.objects.filter(tenant_id=actor.tenant_id).order_by("created_at", "id")
        return _page(_narrowed(rows, search, _USER_COLUMNS), search, users_of)


def list_groups(*, actor: Actor, search: SearchRequest[Group]) -> Found[Group]:
    """Raises TooManyException."""
    with tenant(actor.tenant_id):
        rows = ScimGroup.objects.filter(tenant_id=actor.tenant_id)
        rows = rows.order_by("created_at", "team_id")
        return _page(_narrowed(rows, search, _GROUP_COLUMNS), search, groups_of)


@dataclass(frozen=True, slots=True)
class GroupRole:
    id: uuid.UUID  # of the team, too
    name: str
    role: Role | None  # None: the group says nothing of that


def list_group_roles(*, actor: Actor) -> list[GroupRole]:
    """By name. Raises Forbidden."""
    actor.require(Permission.READ_ACCESS)
    with tenant(actor.tenant_id):
        rows = list(ScimGroup.objects.filter(tenant_id=actor.tenant_id))
        names = _team_names(row.team_id for row in rows)
    found = [
        GroupRole(row.team_id, names[row.team_id], Role(row.role) if row.role else None)
        for row in rows
    ]
    return sorted(found, key=lambda group: group.name.casefold())


def find_user(*, actor: Actor, user_id: str) -> User:
    """Raises NotFound."""
    with tenant(actor.tenant_id):
        return users_of([user_row(actor, user_id)])[0]


def find_group(*, actor: Actor, group_id: str) -> Group:
    """Raises NotFound."""
    with tenant(actor.tenant_id):
        return groups_of([group_row(actor, group_id)])[0]


def user_row(actor: Actor, user_id: str) -> ScimUser:
    """Inside the tenant's scope. Raises NotFound."""
    try:
        return ScimUser.objects.get(tenant_id=actor.tenant_id, id=uuid.UUID(user_id))
    except (ScimUser.DoesNotExist, ValueError) as error:
        raise NotFound("There is no such user.") from error


def group_row(actor: Actor, group_id: str) -> ScimGroup:
    """Inside the tenant's scope. Raises NotFound."""
    try:
        return ScimGroup.objects.get(tenant_id=actor.tenant_id, team_id=uuid.UUID(group_id))
    except (ScimGroup.DoesNotExist, ValueError) as error:
        raise NotFound("There is no such group.") from error


def users_of(rows: Sequence[ScimUser]) -> list[User]:
    """Three queries, however many there are."""
    members = ScimGroupMember.objects.filter(scim_user_id__in=[row.id for row in rows])
    teams = defaultdict(list)
    for scim_user_id, team_id in members.order_by("team_id").values_list("scim_user_id", "team_id"):
        teams[scim_user_id].append(team_id)
    names = _team_names({team_id for found in teams.values() for team_id in found})
    return [_user(row, [(team_id, names[team_id]) for team_id in teams[row.id]]) for row in rows]


def groups_of(rows: Sequence[ScimGroup]) -> list[Group]:
    """Three queries, however many there are."""
    team_ids = [row.team_id for row in rows]
    names = _team_names(team_ids)
    members = ScimGroupMember.objects.filter(team_id__in=team_ids)
    in_teams = defaultdict(list)
    for team_id, user_id in members.order_by("scim_user_id").values_list("team_id", "scim_user_id"):
        in_teams[team_id].append(user_id)
    return [_group(row, names[row.team_id], in_teams[row.team_id]) for row in rows]


def _team_names(team_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, str]:
    return dict(Team.objects.filter(id__in=list(team_ids)).values_list("id", "name"))


def _user(row: ScimUser, groups: list[tuple[uuid.UUID, str]]) -> User:
    user = User.model_validate(row.document)
    user.id = str(row.id)
    user.groups = [
        GroupMembership(
            value=str(team_id),
            display=name,
            ref=Reference(_location("Groups", team_id)),
            type="direct",
        )
        for team_id, name in groups
    ] or None
    return _with_meta(user, "User", _location("Users", row.id), row)


def _group(row: ScimGroup, name: str, members: list[uuid.UUID]) -> Group:
    group = Group(
        id=str(row.team_id),
        external_id=row.external_id or None,
        display_name=name,
        members=[
            GroupMember(value=str(user_id), ref=Reference(_location("Users", user_id)))
            for user_id in members
        ]
        or None,
    )
    return _with_meta(group, "Group", _location("Groups", row.team_id), row)


def _with_meta(resource: _Found, kind: str, location: str, row: ScimUser | ScimGroup) -> _Found:
    document = json.dumps(resource.model_dump(), sort_keys=True)
    resource.meta = Meta(
        resource_type=kind,
        created=row.created_at,
        last_modified=row.changed_at,
        location=location,
        version=etag_of(document),
    )
    return resource


def _location(kind: str, resource_id: uuid.UUID) -> str:
    return f"{settings.CONSOLE_URL}/scim/v2/{kind}/{resource_id}"


def _narrowed(
    rows: QuerySet[_Row], search: "SearchRequest[Any]", columns: Mapping[str, str]
) -> QuerySet[_Row]:
    """By what an index knows. Nothing is lost by it: the filter itself is still asked."""
    node = None if search.filter is None else search.filter.ast
    if not isinstance(node, Comparison) or node.op is not CompareOperator.eq:
        return rows
    column = columns.get(str(node.attr_path).lower())
    if column is None or not isinstance(node.value, str) or "\0" in node.value:
        return rows
    if column not in _ID_COLUMNS:
        return rows.filter(**{column: node.value})
    try:
        return rows.filter(**{column: uuid.UUID(node.value)})
    except ValueError:
        return rows.none()


def _page(
    rows: QuerySet[_Row],
    search: "SearchRequest[Any]",
    build: Callable[[Sequence[_Row]], list[_Found]],
) -> Found[_Found]:
    """Raises TooManyException."""
    start = min(search.start_index_0 or 0, _MAX_START)
    count = MAX_RESULTS if search.count is None else min(search.count, MAX_RESULTS)
    if search.filter is None and search.sort_by is None:
        return Found(build(list(rows[start : start + count])), rows.count(), start + 1)
    searched = list(rows[: MAX_SEARCHED + 1])
    if len(searched) > MAX_SEARCHED:
        raise TooManyException
    found = build(searched)
    if search.filter is not None:
        found = [resource for resource in found if search.filter.match(resource)]
    if search.sort_by is not None:
        found = search.sort(found)
    return Found(found[start : start + count], len(found), start + 1)
