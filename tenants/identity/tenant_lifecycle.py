"""Operations that create a customer's tenant, with its encryption key, plan and first owner.

Other operations invite further owners, and change a tenant's name and other columns.
`tenants.identity.members.tenant_status` suspends, resumes and closes tenants.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial

from django.db import transaction

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.bearer_tokens import TenantToken, token_digest
from tenants.base.billing_periods import utc_day
from tenants.base.errors import Conflict, InvalidValue, NotFound
from tenants.base.validation.text import parse_reason
from tenants.billing.plans.operations import subscribe_tenant
from tenants.billing.plans.queries import list_plans
from tenants.identity.invitations.email import build_invitation_url, send_invitation
from tenants.identity.invitations.operations import LIFETIME, create_owner_invitation
from tenants.identity.members.operations import create_tenant, parse_tenant_name
from tenants.identity.trials import set_trial_end
from tenants.models import Invitation, Tenant
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.audit.operations import ChangeFields, record_change
from tenants.security.authorization.actor import Actor
from tenants.security.encryption.errors import RootKeyUnavailable
from tenants.security.encryption.key_creation import create_tenant_key
from tenants.security.encryption.root_keys import load_root_keys


@dataclass(frozen=True, slots=True)
class NewTenant:
    slug: str  # never changes
    name: str  # the name that people see
    owner_email: str  # gets the first owner's invitation
    plan: str | None = None  # slug of a plan, in force from today; None: the tenant is not billed
    region: str | None = None  # where its data is stored; None: the installation's own
    trial_ends_on: date | None = None  # last day (UTC) with completions; None: no trial


@dataclass(frozen=True, slots=True)
class OwnerInvitation:
    """The invitation of an owner by an operator or by sign-up.

    The URL is shown once and stored nowhere.
    """

    email: str
    url: str = field(repr=False)
    expires_at: datetime
    is_mailed: bool  # False: not sent yet, or the mail server did not accept the e-mail


@dataclass(frozen=True, slots=True)
class OnboardedTenant:
    tenant_id: TenantId
    slug: str
    owner_invitation: OwnerInvitation


def onboard_tenant(
    *,
    new: NewTenant,
    actor_for: Callable[[TenantId], Actor],
    now: datetime,
    configure: Callable[[Actor], None] | None = None,
) -> OnboardedTenant:
    """Create a tenant with its encryption key and plan, and invite its first owner.

    All changes are one transaction. The e-mail is sent after the commit. `actor_for` returns the
    actor for the new tenant's ID: an operator or the platform. `configure` gets this actor and
    changes further settings of the tenant, in the same transaction. If it raises an error, no
    tenant is created.

    Raises Forbidden, InvalidValue, and Conflict if the slug is taken or the key management service
    does not respond.
    """
    with transaction.atomic():
        tenant_id = create_tenant(
            slug=new.slug, name=new.name, region=new.region, actor_for=actor_for, now=now
        )
        actor = actor_for(tenant_id)
        actor.require_operator()
        _create_encryption_key(tenant_id, now)
        if new.plan is not None:
            _subscribe_to_plan(actor, new.plan, now)
        if new.trial_ends_on is not None:
            set_trial_end(actor=actor, ends_on=new.trial_ends_on, reason="", now=now)
        if configure is not None:
            configure(actor)
        token = _invite_owner(actor, new.owner_email, now)
    return OnboardedTenant(tenant_id, new.slug, _to_invitation(new.owner_email, token, now))


def invite_owner(*, actor: Actor, email: str, now: datetime) -> OwnerInvitation:
    """Invite an owner. If the tenant has no owner, this revokes earlier invitations of owners.

    Raises Forbidden, InvalidValue, NotFound, Conflict, LimitReached.
    """
    return _to_invitation(email, _invite_owner(actor, email, now), now)


def rename_tenant(*, actor: Actor, name: str, reason: str, now: datetime) -> None:
    """Change the name that people see. The slug does not change.

    Raises Forbidden, InvalidValue, NotFound.
    """
    actor.require_operator()
    change_tenant_columns(
        actor=actor,
        action="tenant.renamed",
        columns={"name": parse_tenant_name(name)},
        reason=parse_reason(reason),
        now=now,
    )


def change_tenant_columns(
    *, actor: Actor, action: str, columns: ChangeFields, reason: str, now: datetime
) -> None:
    """Update the tenant's row, and record the old and the new values in its audit log.

    Checks no permission. Raises NotFound.
    """
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)  # locks the tenant
        row = Tenant.objects.get(id=actor.tenant_id)
        before = {name: getattr(row, name) for name in columns}
        Tenant.objects.filter(id=actor.tenant_id).update(**columns)
        record_change(
            actor=actor,
            action=action,
            target=f"tenant:{row.slug}",
            change=(before, columns),
            reason=reason,
            now=now,
        )


def _create_encryption_key(tenant_id: TenantId, now: datetime) -> None:
    try:
        with tenant_scope(tenant_id):
            create_tenant_key(tenant_id=tenant_id, root_key=load_root_keys().current, now=now)
    except RootKeyUnavailable as error:
        raise Conflict(
            "The key management service does not respond. Try again in a minute."
        ) from error


def _subscribe_to_plan(actor: Actor, plan: str, now: datetime) -> None:
    if plan not in {known_plan.slug for known_plan in list_plans()}:
        raise InvalidValue("plan", "The plan {slug} does not exist.", slug=plan)
    subscribe_tenant(actor=actor, plan=plan, starts_on=utc_day(now), now=now)


def _invite_owner(actor: Actor, email: str, now: datetime) -> TenantToken:
    actor.require_operator()
    try:
        name = Tenant.objects.get(id=actor.tenant_id).name
    except Tenant.DoesNotExist as error:
        raise NotFound("This tenant does not exist.") from error
    mailer = partial(send_invitation, tenant_name=name)
    return create_owner_invitation(actor=actor, email=email, mailer=mailer, now=now)


def _to_invitation(email: str, token: TenantToken, now: datetime) -> OwnerInvitation:
    """Return the invitation as shown to the operator. Call this after the commit, which mails it.

    In a transaction of the caller, the e-mail is not sent yet, so `is_mailed` is False.
    """
    with tenant_scope(token.tenant_id):
        mailed_invitations = Invitation.objects.filter(
            digest=token_digest(token), mailed_at__isnull=False
        )
        is_mailed = mailed_invitations.exists()
    return OwnerInvitation(
        email.strip().lower(), build_invitation_url(token), now + LIFETIME, is_mailed=is_mailed
    )
