"""Operations that create tenants, users and memberships.

`tenants.identity.member_lifecycle` changes and ends memberships.
"""

import re
import unicodedata
from collections.abc import Callable
from datetime import datetime
from typing import Final

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.permissions import Permission, Role
from tenants.base.validation.text import validate_text
from tenants.billing.rating.seats import post_pending_seat_charges
from tenants.identity.members.password_validation import set_valid_password
from tenants.identity.members.scim_sync import sync_scim_active
from tenants.models import Erasure, Membership, Tenant, User
from tenants.policy.document import DEFAULT_POLICY
from tenants.policy.operations import insert_version
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import Actor, build_system_actor

# A DNS label: an installation may use it in host names.
_SLUG: Final = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
# Slugs that users could mistake for names of the platform itself.
RESERVED_SLUGS: Final = frozenset(
    {
        *("admin", "administrator", "api", "app", "auth", "billing", "caret", "console", "docs"),
        *("gateway", "help", "internal", "localhost", "mail", "metrics", "operator", "operators"),
        *("platform", "root", "security", "status", "support", "system", "www"),
    }
)
MAX_NAME_CHARS: Final = 120
_REGION: Final = re.compile(r"[a-z][a-z0-9-]{1,31}")


def create_tenant(
    *,
    slug: str,
    name: str,
    now: datetime,
    region: str | None = None,
    actor_for: Callable[[TenantId], Actor] = build_system_actor,
) -> TenantId:
    """Create a tenant with the default policy, but without an encryption key, a plan or members.

    `tenants.identity.tenant_lifecycle.onboard_tenant` calls this, and adds what is missing.
    `region` is where the tenant's data is stored; None: the region of the installation. `actor_for`
    gets the ID of the new tenant, and returns the actor for the audit log. Raises InvalidValue,
    Conflict.
    """
    check_slug(slug)
    name = parse_tenant_name(name)
    region = str(settings.REGION) if region is None else parse_region(region)
    with transaction.atomic():
        try:
            with transaction.atomic():
                row = Tenant.objects.create(
                    slug=slug,
                    name=name,
                    status=TenantStatus.ACTIVE,
                    region=region,
                    created_at=now,
                )
        except IntegrityError as error:
            raise Conflict("The tenant {slug} already exists.", slug=slug) from error
        actor = actor_for(TenantId(str(row.id)))
        with tenant_scope(actor.tenant_id):
            insert_version(
                actor=actor, policy=DEFAULT_POLICY, version=1, reason="Default policy.", now=now
            )
            record_change(
                actor=actor,
                action="tenant.created",
                target=f"tenant:{slug}",
                change=(None, {"slug": slug, "name": name, "region": region}),
                now=now,
            )
            mark_snapshot_stale(tenant_id=actor.tenant_id)
    return actor.tenant_id


def create_user(*, email: str, name: str, password: str, now: datetime) -> UserId:
    """Create a user without a tenant. Raises InvalidValue, Conflict."""
    email = email.strip().lower()
    validate_text("name", name)
    user = User(email=email, name=name, created_at=now)
    try:
        validate_email(email)
    except ValidationError as error:
        raise InvalidValue("email", "This is not a valid e-mail address.") from error
    set_valid_password(user, password)
    try:
        with transaction.atomic():
            user.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict("A user with this e-mail address already exists.") from error
    return UserId(str(user.id))


def add_member(*, actor: Actor, user_id: UserId, role: Role, now: datetime) -> None:
    """Make a user a member.

    Raises Forbidden, and Conflict if the user is a member already or is being erased.
    """
    actor.require(Permission.WRITE_MEMBERS)
    if role is Role.OWNER:
        actor.require(Permission.WRITE_OWNERS)
    with tenant_scope(actor.tenant_id):
        insert_membership(tenant_id=actor.tenant_id, user_id=user_id, role=role, now=now)
        record_change(
            actor=actor,
            action="member.added",
            target=f"user:{user_id}",
            change=(None, {"role": role.value}),
            now=now,
        )


def insert_membership(*, tenant_id: TenantId, user_id: UserId, role: Role, now: datetime) -> None:
    """Insert or reactivate a membership.

    Must run inside the tenant's scope, in a transaction that an error rolls back: some rows are
    written before the membership is checked. The row of a former member is reused, so the seat
    charges of the earlier membership are posted first. Raises Conflict if the user is a member
    already or is being erased.
    """
    being_erased = Erasure.objects.filter(tenant_id=tenant_id, user_id=user_id, finished_at=None)
    if being_erased.exists():
        raise Conflict("This person's data is being erased. Wait until the erasure is finished.")
    row, is_new = Membership.objects.get_or_create(
        tenant_id=tenant_id, user_id=user_id, defaults={"role": role, "created_at": now}
    )
    sync_scim_active(tenant_id=tenant_id, user_id=user_id, active=True, now=now)
    if is_new:
        return
    ended_memberships = Membership.objects.filter(
        tenant_id=tenant_id, user_id=user_id, ended_at__isnull=False
    )
    post_pending_seat_charges(tenant_id, now=now)
    if not ended_memberships.update(role=role, created_at=now, ended_at=None, erased_at=None):
        raise Conflict("This user is already a member with the role {role}.", role=Role(row.role))


def parse_tenant_name(name: str) -> str:
    """Return the name without surrounding whitespace. Raises InvalidValue."""
    validate_text("name", name)
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME_CHARS or not name.isprintable():
        raise InvalidValue("name", "Enter 1 to {most} characters on one line.", most=MAX_NAME_CHARS)
    return name


def is_slug(text: str) -> bool:
    """Return whether the text has the form of a slug. The slug may be reserved or in use."""
    return _SLUG.fullmatch(text) is not None


def check_slug(slug: str) -> None:
    """Check the form of a new slug, and that it is not reserved. Raises InvalidValue."""
    # A letter of another script can look like a Latin one, so the message names it.
    foreign_letter = next((char for char in slug if char.isalpha() and not char.isascii()), None)
    if foreign_letter is not None:
        raise InvalidValue(
            "slug",
            "Use only the letters a to z. The slug contains {character}.",
            character=unicodedata.name(foreign_letter, ascii(foreign_letter)),
        )
    if not is_slug(slug):
        raise InvalidValue(
            "slug",
            "Enter 1 to 63 lower-case letters, digits and hyphens. Start with a letter, and do "
            "not end with a hyphen.",
        )
    if slug in RESERVED_SLUGS:
        raise InvalidValue("slug", "The slug {slug} is reserved. Choose another.", slug=slug)


def parse_region(region: str) -> str:
    """Return the region if its name is valid. Raises InvalidValue."""
    if _REGION.fullmatch(region) is None:
        raise InvalidValue(
            "region",
            "Enter 2 to 32 lower-case letters, digits and hyphens, starting with a letter.",
        )
    return region
