"""Operations on SCIM groups. A group is a team that an identity provider manages.

A group can also set the role of its members.
"""

import re
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Final

from scim2_models import PatchOp

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Forbidden, InvalidValue
from tenants.base.permissions import Permission, Role
from tenants.base.validation.text import validate_text
from tenants.identity.scim.provisioning import sync_member
from tenants.identity.scim.queries import build_group_resources, find_group_row
from tenants.identity.scim.resources import POLICY
from tenants.identity.scim.resources import Group as ScimGroupResource
from tenants.identity.teams.operations import create_team, delete_team, rename_team
from tenants.models import ScimGroup, ScimGroupMember, ScimUser
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.audit.operations import ChangeFields, record_change
from tenants.security.authorization.actor import Actor

MAX_TEXT_CHARS: Final = 254  # of externalId: the column's length
MAX_CHANGED_MEMBERS: Final = 1_000  # each member is updated while the tenant is locked
# For each patch: the number of members of the group, times the number of operations with a filter
# path. Each such operation is tried on each member, which takes 0.1 ms.
MAX_TRIED_MEMBERS: Final = 50_000
# The path of a patch operation that removes one member by ID.
_REMOVAL: Final = re.compile(r'members\[\s*value\s+eq\s+"([^"\\]+)"\s*\]', re.IGNORECASE)

# Gets the current resource. Raises SCIMException if the client has seen another version of it.
Precondition = Callable[[ScimGroupResource], None]


def create_group(*, actor: Actor, resource: ScimGroupResource, now: datetime) -> ScimGroupResource:
    """Create a group with its team. Raises Forbidden, InvalidValue, Conflict."""
    actor.require(Permission.WRITE_TEAMS)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)  # locks the tenant
        team = create_team(actor=actor, name=_read_name(resource), now=now)
        row = ScimGroup.objects.create(
            tenant_id=actor.tenant_id,
            team_id=team.id,
            external_id=_get_external_id(resource),
            role="",
            created_at=now,
            changed_at=now,
        )
        _set_members(actor, row, resource, now)
        return build_group_resources([row])[0]


def replace_group(
    *, actor: Actor, group_id: str, resource: ScimGroupResource, check: Precondition, now: datetime
) -> ScimGroupResource:
    """Replace a group. Raises Forbidden, NotFound, InvalidValue, Conflict."""
    return _change_group(actor, group_id, lambda current: resource, check, now)


def patch_group(
    *,
    actor: Actor,
    group_id: str,
    patch: PatchOp[ScimGroupResource],
    check: Precondition,
    now: datetime,
) -> ScimGroupResource:
    """Apply a patch to a group.

    Raises Forbidden, NotFound, InvalidValue, Conflict, and SCIMException for an invalid patch.
    """

    def apply_patch(current: ScimGroupResource) -> ScimGroupResource:
        removed_ids = _find_removals(patch)
        if removed_ids is not None:
            current.members = [
                member for member in current.members or [] if member.value not in removed_ids
            ] or None
        else:
            _require_few_changes(current, patch)
            patch.patch(current, POLICY)
        return current

    return _change_group(actor, group_id, apply_patch, check, now)


def delete_group(*, actor: Actor, group_id: str, check: Precondition, now: datetime) -> None:
    """Delete a group and its team. The members stay in the tenant.

    Raises Forbidden, NotFound, InvalidValue, Conflict.
    """
    actor.require(Permission.WRITE_TEAMS)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        row = find_group_row(actor, group_id)
        check(build_group_resources([row])[0])
        member_ids = _find_member_ids(row)
        # Deleting the team also deletes the group's rows.
        delete_team(actor=actor, team_id=row.team_id, now=now, by_scim=True)
        _sync_members(actor, member_ids, now, groups_decide=row.role != "")


def set_group_role(*, actor: Actor, group_id: uuid.UUID, role: Role | None, now: datetime) -> None:
    """Set the role that a group gives its members; None: no role.

    Raises Forbidden, NotFound, InvalidValue, Conflict.
    """
    actor.require(Permission.WRITE_SIGN_IN_SETTINGS)
    if role is Role.OWNER:
        raise Forbidden(
            "A group cannot have the owner role. Owners must appoint other owners themselves."
        )
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        row = find_group_row(actor, str(group_id))
        old_role = row.role
        row.role = "" if role is None else role.value
        ScimGroup.objects.filter(tenant_id=actor.tenant_id, team_id=group_id).update(role=row.role)
        all_user_ids = ScimUser.objects.filter(tenant_id=actor.tenant_id).values_list(
            "id", flat=True
        )
        # If this is the first group that sets a role, the members of other groups and of no group
        # become developers.
        affected_ids = _find_member_ids(row) if role is None else set(all_user_ids)
        _sync_members(actor, affected_ids, now, groups_decide=old_role != "")
        _record_change(
            actor, "scim_group.role_changed", row, ({"role": old_role}, {"role": row.role}), now
        )


def _change_group(
    actor: Actor,
    group_id: str,
    apply_change: Callable[[ScimGroupResource], ScimGroupResource],
    check: Precondition,
    now: datetime,
) -> ScimGroupResource:
    actor.require(Permission.WRITE_TEAMS)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        row = find_group_row(actor, group_id)
        current = build_group_resources([row])[0]
        check(current)
        resource = apply_change(current)
        rename_team(
            actor=actor, team_id=row.team_id, name=_read_name(resource), now=now, by_scim=True
        )
        row.external_id, row.changed_at = _get_external_id(resource), now
        row.save(update_fields=["external_id", "changed_at"])
        _set_members(actor, row, resource, now)
        return build_group_resources([row])[0]


def _find_removals(patch: PatchOp[ScimGroupResource]) -> set[str] | None:
    """Return the IDs of the members to remove; None: the patch does more than remove them by ID.

    Most large patches only remove members by ID. scim2-models is too slow for them: it tries the
    path of each operation on each member, which takes 0.1 ms each time.
    """
    operations = patch.operations or []
    matches = [
        _REMOVAL.fullmatch(str(operation.path))
        for operation in operations
        if operation.op == "remove"
    ]
    member_ids = [match[1] for match in matches if match is not None]
    return set(member_ids) if len(member_ids) == len(operations) else None


def _require_few_changes(current: ScimGroupResource, patch: PatchOp[ScimGroupResource]) -> None:
    """Check that applying the patch does not take too long. Raises InvalidValue."""
    num_filter_paths = sum("[" in str(operation.path) for operation in patch.operations or [])
    if num_filter_paths * len(current.members or []) > MAX_TRIED_MEMBERS:
        raise InvalidValue(
            "Operations", "The group is too large for this many operations. Send fewer."
        )


def _set_members(actor: Actor, row: ScimGroup, resource: ScimGroupResource, now: datetime) -> None:
    """Set the group's members to those of the resource, and synchronize each changed member.

    Raises Conflict, and InvalidValue for an unknown member or too many changes.
    """
    new_ids = {_parse_user_id(member.value) for member in resource.members or []}
    old_ids = _find_member_ids(row)
    if len(new_ids ^ old_ids) > MAX_CHANGED_MEMBERS:
        raise InvalidValue(
            "members", "Add or remove at most {most} members per request.", most=MAX_CHANGED_MEMBERS
        )
    existing = ScimUser.objects.filter(tenant_id=actor.tenant_id, id__in=new_ids)
    if set(existing.values_list("id", flat=True)) != new_ids:
        raise InvalidValue("members", "A member of this group does not exist.")
    if new_ids == old_ids:
        return
    rows = ScimGroupMember.objects.filter(tenant_id=actor.tenant_id, team_id=row.team_id)
    rows.filter(scim_user_id__in=old_ids - new_ids).delete()
    ScimGroupMember.objects.bulk_create(
        ScimGroupMember(tenant_id=actor.tenant_id, team_id=row.team_id, scim_user_id=user_id)
        for user_id in sorted(new_ids - old_ids)
    )
    _sync_members(actor, new_ids ^ old_ids, now)
    change: tuple[ChangeFields, ChangeFields] = (
        {"num_members": len(old_ids)},
        {"num_members": len(new_ids)},
    )
    _record_change(actor, "scim_group.members_changed", row, change, now)


def _find_member_ids(row: ScimGroup) -> set[uuid.UUID]:
    rows = ScimGroupMember.objects.filter(tenant_id=row.tenant_id, team_id=row.team_id)
    return set(rows.values_list("scim_user_id", flat=True))


def _sync_members(
    actor: Actor, user_ids: set[uuid.UUID], now: datetime, *, groups_decide: bool = False
) -> None:
    """Synchronize the members of these SCIM users.

    `groups_decide`: their group has set a role until now. So if no group sets a role any more, they
    become developers.
    """
    rows = ScimUser.objects.filter(tenant_id=actor.tenant_id, id__in=user_ids)
    for row in rows.order_by("id"):
        sync_member(actor=actor, row=row, now=now, groups_decide=groups_decide)


def _parse_user_id(value: str | None) -> uuid.UUID:
    """Return the ID of a SCIM user. Raises InvalidValue."""
    try:
        return uuid.UUID(value or "")
    except ValueError as error:
        raise InvalidValue("members", "A member of this group does not exist.") from error


def _read_name(resource: ScimGroupResource) -> str:
    return (resource.display_name or "").strip()


def _get_external_id(resource: ScimGroupResource) -> str:
    """Return the external ID; "": none. Raises InvalidValue."""
    text = resource.external_id or ""
    validate_text("externalId", text)
    if len(text) > MAX_TEXT_CHARS:
        raise InvalidValue("externalId", "Enter at most {most} characters.", most=MAX_TEXT_CHARS)
    return text


def _record_change(
    actor: Actor,
    action: str,
    row: ScimGroup,
    change: tuple[ChangeFields | None, ChangeFields | None],
    now: datetime,
) -> None:
    record_change(actor=actor, action=action, target=f"team:{row.team_id}", change=change, now=now)
