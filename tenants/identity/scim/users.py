"""Operations on SCIM users: the users that a tenant's identity provider manages."""

import json
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime

from django.db import IntegrityError, transaction
from scim2_models import PatchOp

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.permissions import Permission
from tenants.base.validation.text import is_storable
from tenants.identity.scim.provisioning import deprovision_member, sync_member
from tenants.identity.scim.queries import build_user_resources, find_user_row
from tenants.identity.scim.resources import POLICY, get_address
from tenants.identity.scim.resources import User as ScimUserResource
from tenants.models import ScimUser
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.audit.operations import ChangeFields, record_change
from tenants.security.authorization.actor import Actor

MAX_TEXT_CHARS = 254  # of userName, externalId and the e-mail address: the columns' length
MAX_DOCUMENT_CHARS = 16_384  # of the stored JSON document of one user

# Gets the current resource. Raises SCIMException if the client has seen another version of it.
Precondition = Callable[[ScimUserResource], None]


def create_user(*, actor: Actor, resource: ScimUserResource, now: datetime) -> ScimUserResource:
    """Create a user. Raises Forbidden, InvalidValue, Conflict."""
    actor.require(Permission.WRITE_MEMBERS)
    if resource.active is None:
        resource.active = True
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)  # locks the tenant
        row = ScimUser(tenant_id=actor.tenant_id, id=uuid.uuid4(), created_at=now)
        _write_user(actor, row, resource, now, action="scim_user.created")
        return build_user_resources([row])[0]


def replace_user(
    *, actor: Actor, user_id: str, resource: ScimUserResource, check: Precondition, now: datetime
) -> ScimUserResource:
    """Replace a user. Raises Forbidden, NotFound, InvalidValue, Conflict."""
    return _change_user(actor, user_id, lambda current: resource, check, now)


def patch_user(
    *,
    actor: Actor,
    user_id: str,
    patch: PatchOp[ScimUserResource],
    check: Precondition,
    now: datetime,
) -> ScimUserResource:
    """Apply a patch to a user.

    Raises Forbidden, NotFound, InvalidValue, Conflict, and SCIMException for an invalid patch.
    """

    def apply_patch(current: ScimUserResource) -> ScimUserResource:
        patch.patch(current, POLICY)
        return current

    return _change_user(actor, user_id, apply_patch, check, now)


def delete_user(*, actor: Actor, user_id: str, check: Precondition, now: datetime) -> None:
    """Delete the SCIM user and end the membership. The account stays.

    Raises Forbidden, NotFound, and Conflict for the last owner.
    """
    actor.require(Permission.WRITE_MEMBERS)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        row = find_user_row(actor, user_id)
        check(build_user_resources([row])[0])
        deprovision_member(actor=actor, row=row, now=now)
        ScimUser.objects.filter(tenant_id=actor.tenant_id, id=row.id).delete()
        _record_change(actor, "scim_user.deleted", row, (_to_change_fields(row), None), now)


def _change_user(
    actor: Actor,
    user_id: str,
    apply_change: Callable[[ScimUserResource], ScimUserResource],
    check: Precondition,
    now: datetime,
) -> ScimUserResource:
    actor.require(Permission.WRITE_MEMBERS)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        row = find_user_row(actor, user_id)
        current = build_user_resources([row])[0]
        check(current)
        _write_user(actor, row, apply_change(current), now, action="scim_user.changed")
        return build_user_resources([row])[0]


def _write_user(
    actor: Actor, row: ScimUser, resource: ScimUserResource, now: datetime, *, action: str
) -> None:
    """Store the resource in its row, synchronize the member and write the audit log.

    Nothing happens if the resource equals the row. Raises InvalidValue, Conflict.
    """
    is_new = row.document is None
    old_fields = None if is_new else _to_change_fields(row)
    old_document = row.document
    _fill_row(row, resource)
    new_fields = _to_change_fields(row)
    if (old_fields, old_document) == (new_fields, row.document):
        return
    row.changed_at = now
    try:
        with transaction.atomic():
            row.save(force_insert=is_new)
    except IntegrityError as error:
        raise Conflict("Another user already has this userName.") from error
    sync_member(actor=actor, row=row, now=now)
    _record_change(actor, action, row, (old_fields, new_fields), now)


def _fill_row(row: ScimUser, resource: ScimUserResource) -> None:
    """Validate a resource and copy it into its row. Raises InvalidValue."""
    document = resource.model_dump(exclude={"id", "meta", "groups"})
    if len(json.dumps(document)) > MAX_DOCUMENT_CHARS:
        raise InvalidValue(
            "emails", "Enter at most {most} characters in total.", most=MAX_DOCUMENT_CHARS
        )
    if not all(is_storable(text) for text in _iterate_texts(document)):
        raise InvalidValue("userName", "This text contains characters that are not allowed.")
    texts = {
        "userName": (resource.user_name or "").strip(),
        "externalId": resource.external_id or "",
        "emails": get_address(resource),
    }
    for field, text in texts.items():
        if len(text) > MAX_TEXT_CHARS:
            raise InvalidValue(field, "Enter at most {most} characters.", most=MAX_TEXT_CHARS)
    if not texts["emails"].isprintable():  # a line break could add a header to an e-mail
        raise InvalidValue("emails", "This is not a valid e-mail address.")
    if not texts["userName"]:
        raise InvalidValue("userName", "Set userName.")
    row.user_name, row.external_id, row.email = texts.values()  # in the order of `texts`
    # If `active` is not specified, a user who was removed in the console stays inactive.
    if resource.active is not None:
        row.active = resource.active
    row.document = document


def _iterate_texts(part: object) -> Iterator[str]:
    """Yield the strings of a JSON value at all depths, without the names of object members."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict):
        for value in part.values():
            yield from _iterate_texts(value)
    elif isinstance(part, list):
        for item in part:
            yield from _iterate_texts(item)


def _to_change_fields(row: ScimUser) -> ChangeFields:
    """Return facts that do not identify the user: an audit entry outlives an erasure."""
    return {"active": "yes" if row.active else "no"}


def _record_change(
    actor: Actor,
    action: str,
    row: ScimUser,
    change: tuple[ChangeFields | None, ChangeFields | None],
    now: datetime,
) -> None:
    record_change(actor=actor, action=action, target=f"scim_user:{row.id}", change=change, now=now)
