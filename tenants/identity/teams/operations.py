"""Operations on teams. A member who leaves the tenant also leaves its teams.

A team that an identity provider manages as a group can be changed only by SCIM. The next SCIM
update would undo a manual change. Also, a member who was removed manually would keep the role that
the group has given.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from django.db import IntegrityError, transaction

from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.permissions import Permission
from tenants.base.validation.text import validate_printable
from tenants.billing.budgets.limits import require_budget_limit_per_user
from tenants.identity.teams.queries import TeamView, find_team
from tenants.models import ScimGroup, Team, TeamMembership
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.audit.operations import ChangeFields, record_change
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.directory import find_membership

MAX_NAME_CHARS: Final = 120
MAX_TEAMS: Final = 1_000  # per tenant


def create_team(*, actor: Actor, name: str, now: datetime) -> TeamView:
    """Create a team. Raises Forbidden, InvalidValue, Conflict."""
    actor.require(Permission.WRITE_TEAMS)
    name = _read_name(name)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)  # locks the tenant, so the count stays right
        if Team.objects.filter(tenant_id=actor.tenant_id).count() >= MAX_TEAMS:
            raise Conflict("You already have {most} teams, which is the limit.", most=MAX_TEAMS)
        team_id = uuid.uuid4()
        with _raise_conflict_for_duplicate_name(name):
            Team.objects.create(tenant_id=actor.tenant_id, id=team_id, name=name, created_at=now)
        _record_change(actor, "team.created", team_id, (None, {"name": name}), now)
        return find_team(actor=actor, team_id=team_id)


def rename_team(
    *,
    actor: Actor,
    team_id: uuid.UUID,
    name: str,
    now: datetime,
    expected_name: str | None = None,
    by_scim: bool = False,
) -> TeamView:
    """Rename a team.

    An undo passes the name that it expects to replace as `expected_name`; None: any name. `by_scim`
    is True for changes by SCIM: only SCIM may change a team that it manages. Raises Forbidden,
    InvalidValue, NotFound, Conflict.
    """
    actor.require(Permission.WRITE_TEAMS)
    name = _read_name(name)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        team = find_team(actor=actor, team_id=team_id)
        if not by_scim:
            _require_not_managed_by_scim(actor, team_id)
        if expected_name not in (None, team.name):
            raise Conflict("Not undone: someone has renamed the team since.")
        if team.name == name:
            return team
        with _raise_conflict_for_duplicate_name(name):
            Team.objects.filter(tenant_id=actor.tenant_id, id=team_id).update(name=name)
        _record_change(actor, "team.renamed", team_id, ({"name": team.name}, {"name": name}), now)
        return find_team(actor=actor, team_id=team_id)


def delete_team(*, actor: Actor, team_id: uuid.UUID, now: datetime, by_scim: bool = False) -> None:
    """Delete a team. Its members stay in the tenant. `by_scim` is as in rename_team.

    Raises Forbidden, NotFound, Conflict.
    """
    actor.require(Permission.WRITE_TEAMS)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        team = find_team(actor=actor, team_id=team_id)
        if not by_scim:
            _require_not_managed_by_scim(actor, team_id)
        Team.objects.filter(tenant_id=actor.tenant_id, id=team_id).delete()
        _record_change(actor, "team.deleted", team_id, ({"name": team.name}, None), now)


def add_team_member(
    *, actor: Actor, team_id: uuid.UUID, user_id: UserId, now: datetime
) -> TeamView:
    """Add a member to a team. Nothing changes if the member is already in the team.

    Raises Forbidden, NotFound, Conflict.
    """
    actor.require(Permission.WRITE_TEAMS)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)  # locks the tenant, so the member stays
        # Raise NotFound for an unknown team or member.
        find_team(actor=actor, team_id=team_id)
        find_membership(tenant_id=actor.tenant_id, user_id=user_id)
        _require_not_managed_by_scim(actor, team_id)
        _, is_new = TeamMembership.objects.get_or_create(
            tenant_id=actor.tenant_id,
            team_id=team_id,
            user_id=user_id,
            defaults={"created_at": now},
        )
        if is_new:
            require_budget_limit_per_user(actor.tenant_id)
            _record_change(actor, "team.member_added", team_id, (None, {"user_id": user_id}), now)
        return find_team(actor=actor, team_id=team_id)


def remove_team_member(
    *, actor: Actor, team_id: uuid.UUID, user_id: UserId, now: datetime
) -> TeamView:
    """Remove a member from a team. Raises Forbidden, NotFound, Conflict."""
    actor.require(Permission.WRITE_TEAMS)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        # Raise NotFound for an unknown team or member.
        find_team(actor=actor, team_id=team_id)
        find_membership(tenant_id=actor.tenant_id, user_id=user_id)
        _require_not_managed_by_scim(actor, team_id)
        rows = TeamMembership.objects.filter(
            tenant_id=actor.tenant_id, team_id=team_id, user_id=user_id
        )
        if rows.delete()[0]:
            _record_change(actor, "team.member_removed", team_id, ({"user_id": user_id}, None), now)
        return find_team(actor=actor, team_id=team_id)


def require_changeable_team(*, actor: Actor, team_id: uuid.UUID) -> None:
    """Check that SCIM does not manage the team. Raises Forbidden, NotFound, Conflict."""
    with tenant_scope(actor.tenant_id):
        find_team(actor=actor, team_id=team_id)  # raises NotFound for an unknown team
        _require_not_managed_by_scim(actor, team_id)


def _require_not_managed_by_scim(actor: Actor, team_id: uuid.UUID) -> None:
    """Check that SCIM does not manage the team. Raises Conflict."""
    if ScimGroup.objects.filter(tenant_id=actor.tenant_id, team_id=team_id).exists():
        raise Conflict(
            "This team is managed through SCIM. Change the group at your identity provider."
        )


def _read_name(name: str) -> str:
    """Return the name without surrounding whitespace. Raises InvalidValue."""
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME_CHARS:
        raise InvalidValue(
            "name", "Enter a team name of 1 to {most} characters.", most=MAX_NAME_CHARS
        )
    validate_printable("name", name)
    return name


@contextmanager
def _raise_conflict_for_duplicate_name(name: str) -> Iterator[None]:
    """Raise Conflict if the block violates the uniqueness of team names, which ignores case."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        raise Conflict("A team named {name} already exists.", name=name) from error


def _record_change(
    actor: Actor,
    action: str,
    team_id: uuid.UUID,
    change: tuple[ChangeFields | None, ChangeFields | None],
    now: datetime,
) -> None:
    record_change(actor=actor, action=action, target=f"team:{team_id}", change=change, now=now)
