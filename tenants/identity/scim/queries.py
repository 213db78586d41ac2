"""Queries of SCIM users and groups, as SCIM resources.

Only `list_group_roles` checks a permission. The other functions are for SCIM tokens, which may read
all users and groups, and for operations, which check permissions themselves.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar
from uuid import UUID

from django.conf import settings
from django.contrib.postgres.aggregates import StringAgg
from django.db.models import Q, TextField
from django.db.models.functions import MD5, Cast
from scim2_models import (
    GroupMembership,
    Meta,
    Reference,
    Resource,
    ResponseParameters,
    SearchRequest,
)

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import NotFound
from tenants.base.permissions import Permission, Role
from tenants.identity.scim.resources import (
    Group as ScimGroupResource,
)
from tenants.identity.scim.resources import (
    GroupMember,
    compute_etag,
)
from tenants.identity.scim.resources import (
    User as ScimUserResource,
)
from tenants.identity.scim.search import (
    FilterColumns,
    ResourceBuilders,
    SearchResult,
    make_id_filter,
    search_rows,
)
from tenants.models import ScimGroup, ScimGroupMember, ScimUser, Team
from tenants.security.authorization.actor import Actor

_MEMBERS: Final = "members"
_Resource = TypeVar("_Resource", bound=Resource[Any])


def list_users(
    *, actor: Actor, search: SearchRequest[ScimUserResource]
) -> SearchResult[ScimUserResource]:
    """Return the users that match a search. Raises TooManyException."""
    builders = ResourceBuilders(
        row_id=lambda row: row.id,
        outline=build_user_resources if _needs_version(search) else _build_users_without_version,
        complete=build_user_resources,
    )
    with tenant_scope(actor.tenant_id):
        rows = ScimUser.objects.filter(tenant_id=actor.tenant_id).order_by("created_at", "id")
        return search_rows(rows, search, _USER_COLUMNS, builders)


def list_groups(
    *, actor: Actor, search: SearchRequest[ScimGroupResource]
) -> SearchResult[ScimGroupResource]:
    """Return the groups that match a search. Raises TooManyException."""
    searched_text = f"{search.filter or ''} {search.sort_by or ''}".lower()
    builders = ResourceBuilders(
        row_id=lambda row: row.team_id,
        outline=partial(build_group_resources, with_members=_MEMBERS in searched_text),
        complete=partial(build_group_resources, with_members=_includes_members(search)),
    )
    with tenant_scope(actor.tenant_id):
        rows = ScimGroup.objects.filter(tenant_id=actor.tenant_id)
        rows = rows.order_by("created_at", "team_id")
        return search_rows(rows, search, _build_group_columns(actor), builders)


def _filter_emails(value: str) -> Q | None:
    """Return a filter that searches the value in the JSON text of the user's e-mails.

    None: the JSON text would contain the value in another form, with escaped characters.
    """
    if not (value.isascii() and value.isprintable()) or '"' in value or "\\" in value:
        return None
    return Q(document__emails__icontains=value)


# Attributes that identity providers search by. Filters on other attributes do not narrow the query.
_USER_COLUMNS: Final[FilterColumns] = {
    "username": lambda value: Q(user_name__iexact=value),
    "externalid": lambda value: Q(external_id=value),
    "id": make_id_filter("id"),
    "displayname": lambda value: Q(document__displayName__iexact=value),
    "emails": _filter_emails,
    "emails.value": _filter_emails,
}


def _build_group_columns(actor: Actor) -> FilterColumns:
    def filter_by_name(value: str) -> Q:
        teams = Team.objects.filter(tenant_id=actor.tenant_id, name__iexact=value)
        return Q(team_id__in=teams.values("id"))

    def filter_by_member(value: str) -> Q:
        members = ScimGroupMember.objects.filter(tenant_id=actor.tenant_id)
        try:
            return Q(team_id__in=members.filter(scim_user_id=UUID(value)).values("team_id"))
        except ValueError:
            return Q(pk__in=[])

    return {
        "displayname": filter_by_name,
        "externalid": lambda value: Q(external_id=value),
        "id": make_id_filter("team_id"),
        "members": filter_by_member,
        "members.value": filter_by_member,
    }


@dataclass(frozen=True, slots=True)
class GroupRole:
    id: UUID  # also the team's ID
    name: str
    role: Role | None  # None: the group sets no role


def list_group_roles(*, actor: Actor) -> list[GroupRole]:
    """Return all groups with the roles that they set, sorted by name. Raises Forbidden."""
    actor.require(Permission.READ_SIGN_IN_SETTINGS)
    with tenant_scope(actor.tenant_id):
        rows = list(ScimGroup.objects.filter(tenant_id=actor.tenant_id))
        names = _find_team_names(row.team_id for row in rows)
    group_roles = [
        GroupRole(row.team_id, names[row.team_id], Role(row.role) if row.role else None)
        for row in rows
    ]
    return sorted(group_roles, key=lambda group: group.name.casefold())


def find_user(
    *, actor: Actor, user_id: str, parameters: "ResponseParameters[ScimUserResource] | None" = None
) -> ScimUserResource:
    """Return a user with all attributes. Raises NotFound.

    `parameters` has no effect here: the view calls find_user and find_group in the same way.
    """
    with tenant_scope(actor.tenant_id):
        return build_user_resources([find_user_row(actor, user_id)])[0]


def find_group(
    *,
    actor: Actor,
    group_id: str,
    parameters: "ResponseParameters[ScimGroupResource] | None" = None,
) -> ScimGroupResource:
    """Return a group, with its members only if they are requested. Raises NotFound."""
    with_members = parameters is None or _includes_members(parameters)
    with tenant_scope(actor.tenant_id):
        row = find_group_row(actor, group_id)
        return build_group_resources([row], with_members=with_members)[0]


def find_user_row(actor: Actor, user_id: str) -> ScimUser:
    """Return a user's row. Must run inside the tenant's scope. Raises NotFound."""
    try:
        return ScimUser.objects.get(tenant_id=actor.tenant_id, id=UUID(user_id))
    except (ScimUser.DoesNotExist, ValueError) as error:
        raise NotFound("This user does not exist.") from error


def find_group_row(actor: Actor, group_id: str) -> ScimGroup:
    """Return a group's row. Must run inside the tenant's scope. Raises NotFound."""
    try:
        return ScimGroup.objects.get(tenant_id=actor.tenant_id, team_id=UUID(group_id))
    except (ScimGroup.DoesNotExist, ValueError) as error:
        raise NotFound("This group does not exist.") from error


def build_user_resources(rows: Sequence[ScimUser]) -> list[ScimUserResource]:
    """Build the resources of users, with versions (ETags).

    Two queries for any number of users. Must run inside the tenant's scope.
    """
    return [
        _add_version(user, user.model_dump(exclude={"meta"}))
        for user in _build_users_without_version(rows)
    ]


def _build_users_without_version(rows: Sequence[ScimUser]) -> list[ScimUserResource]:
    """Build resources without versions: serializing them for a version takes most of the time."""
    members = ScimGroupMember.objects.filter(scim_user_id__in=[row.id for row in rows])
    teams = defaultdict(list)
    for scim_user_id, team_id in members.order_by("team_id").values_list("scim_user_id", "team_id"):
        teams[scim_user_id].append(team_id)
    names = _find_team_names({team_id for user_teams in teams.values() for team_id in user_teams})
    return [
        _to_user_resource(row, [(team_id, names[team_id]) for team_id in teams[row.id]])
        for row in rows
    ]


def build_group_resources(
    rows: Sequence[ScimGroup], *, with_members: bool = True
) -> list[ScimGroupResource]:
    """Build the resources of groups.

    The version (ETag) depends on the members, even if they are left out. Two queries for any number
    of groups, and one more for the members. Must run inside the tenant's scope.
    """
    team_ids = [row.team_id for row in rows]
    names, digests = _find_team_names(team_ids), _compute_member_digests(team_ids)
    members = _find_group_members(team_ids) if with_members else {}
    groups = []
    for row in rows:
        group = _to_group_resource(row, names[row.team_id])
        versioned_content = [group.model_dump(exclude={"meta"}), digests.get(row.team_id, "")]
        group.members = members.get(row.team_id)
        groups.append(_add_version(group, versioned_content))
    return groups


def _compute_member_digests(team_ids: list[UUID]) -> dict[UUID, str]:
    """Return a digest of the members of each group, computed by Postgres.

    A group may have thousands of members, which are not loaded if they are not requested.
    """
    member_list = StringAgg(Cast("scim_user_id", TextField()), ",", order_by="scim_user_id")
    rows = ScimGroupMember.objects.filter(team_id__in=team_ids).values("team_id")
    return dict(rows.annotate(digest=MD5(member_list)).values_list("team_id", "digest"))


def _find_group_members(team_ids: list[UUID]) -> dict[UUID, list[GroupMember]]:
    rows = ScimGroupMember.objects.filter(team_id__in=team_ids).order_by("scim_user_id")
    members: defaultdict[UUID, list[GroupMember]] = defaultdict(list)
    for team_id, user_id in rows.values_list("team_id", "scim_user_id"):
        reference = Reference[ScimUserResource](_build_location("Users", user_id))
        members[team_id].append(GroupMember(value=str(user_id), ref=reference))
    return dict(members)


def _find_team_names(team_ids: Iterable[UUID]) -> dict[UUID, str]:
    return dict(Team.objects.filter(id__in=list(team_ids)).values_list("id", "name"))


def _to_user_resource(row: ScimUser, groups: list[tuple[UUID, str]]) -> ScimUserResource:
    user = ScimUserResource.model_validate(row.document)
    user.id = str(row.id)
    user.groups = [
        GroupMembership(
            value=str(team_id),
            display=name,
            ref=Reference(_build_location("Groups", team_id)),
            type="direct",
        )
        for team_id, name in groups
    ] or None
    return _add_meta(user, "User", _build_location("Users", row.id), row)


def _to_group_resource(row: ScimGroup, name: str) -> ScimGroupResource:
    group = ScimGroupResource(
        id=str(row.team_id),
        external_id=row.external_id or None,
        display_name=name,
    )
    return _add_meta(group, "Group", _build_location("Groups", row.team_id), row)


def _add_meta(
    resource: _Resource, kind: str, location: str, row: ScimUser | ScimGroup
) -> _Resource:
    resource.meta = Meta(
        resource_type=kind,
        created=row.created_at,
        last_modified=row.changed_at,
        location=location,
    )
    return resource


def _add_version(resource: _Resource, document: object) -> _Resource:
    assert resource.meta is not None, "each resource is built with its meta"
    resource.meta.version = compute_etag(json.dumps(document, sort_keys=True))
    return resource


def _needs_version(search: "SearchRequest[Any]") -> bool:
    """Return whether the filter or the sort order may read `meta.version`."""
    return "version" in f"{search.filter or ''} {search.sort_by or ''}".lower()


def _includes_members(parameters: "ResponseParameters[ScimGroupResource]") -> bool:
    """Return whether `attributes` and `excludedAttributes` request the members."""
    if parameters.attributes:
        return any(_get_top_level_name(name) == _MEMBERS for name in parameters.attributes)
    # Excluding a part of the members, such as `members.display`, does not exclude the members.
    return all(
        str(name).rpartition(":")[2].lower() != _MEMBERS
        for name in parameters.excluded_attributes or []
    )


def _get_top_level_name(name: object) -> str:
    """Return "members" for "urn:ietf:params:scim:schemas:core:2.0:Group:members.value"."""
    return str(name).rpartition(":")[2].partition(".")[0].lower()


def _build_location(kind: str, resource_id: UUID) -> str:
    return f"{settings.CONSOLE_URL}/scim/v2/{kind}/{resource_id}"
