"""Operations that claim, verify and release domains."""

import secrets
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Final

from django.db import IntegrityError, transaction

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict
from tenants.base.permissions import Permission
from tenants.base.validation.email_domains import TXT_PREFIX, parse_domain
from tenants.identity.domains.queries import DomainView, find_domain
from tenants.identity.members.sessions import end_sessions_of_domains
from tenants.identity.scim.provisioning import sync_domain_members
from tenants.models import Domain, IdentityProvider, VerifiedDomain
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import Actor

MAX_DOMAINS: Final = 100  # per tenant

Resolve = Callable[[str], list[str]]  # returns the TXT records of a name


def claim_domain(*, actor: Actor, name: str, now: datetime) -> DomainView:
    """Claim a domain. Several tenants may claim the same one, but only one can verify it.

    Raises Forbidden, InvalidValue, Conflict.
    """
    actor.require(Permission.WRITE_SIGN_IN_SETTINGS)
    name = parse_domain(name)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)  # locks the tenant
        domains = Domain.objects.filter(tenant_id=actor.tenant_id)
        if domains.filter(name=name).exists():
            raise Conflict("{name} is already in your list.", name=name)
        if domains.count() >= MAX_DOMAINS:
            raise Conflict("You already have {most} domains, which is the limit.", most=MAX_DOMAINS)
        row = Domain.objects.create(
            tenant_id=actor.tenant_id,
            name=name,
            challenge=secrets.token_urlsafe(32),
            created_at=now,
        )
        _record_change(actor, "domain.claimed", name, now)
    return find_domain(actor=actor, domain_id=row.id)


def verify_domain(
    *,
    actor: Actor,
    domain_id: uuid.UUID,
    resolve: Resolve,
    now: datetime,
    exempt_session_key: str | None = None,
) -> DomainView:
    """Verify a domain by its TXT record. `resolve` returns the TXT records of a name.

    If the tenant has an identity provider, the sessions of the domain's users end, because these
    users must now sign in at the provider. The session `exempt_session_key` continues.

    Raises Forbidden, NotFound, and Conflict when the record is missing or the domain is another
    tenant's.
    """
    actor.require(Permission.WRITE_SIGN_IN_SETTINGS)
    domain = find_domain(actor=actor, domain_id=domain_id)
    if domain.verified_at is not None:
        return domain
    # The DNS is queried before the transaction, so that no lock is held while it answers.
    if domain.txt_record not in resolve(domain.name):
        raise Conflict(
            "The TXT records of {name} do not include the expected one yet, which starts with "
            "{txt_prefix}. Check the whole value. DNS changes can take a while.",
            name=domain.name,
            txt_prefix=TXT_PREFIX,
        )
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        # The domain may have been released or verified before the tenant was locked.
        domain = find_domain(actor=actor, domain_id=domain_id)
        if domain.verified_at is not None:
            return domain
        _register_domain(actor, domain.name)
        Domain.objects.filter(tenant_id=actor.tenant_id, id=domain_id).update(verified_at=now)
        _end_sessions(actor, domain.name, exempt_session_key)
        _record_change(actor, "domain.verified", domain.name, now)
        sync_domain_members(actor=actor, name=domain.name, now=now)
    return find_domain(actor=actor, domain_id=domain_id)


def release_domain(
    *, actor: Actor, domain_id: uuid.UUID, now: datetime, exempt_session_key: str | None = None
) -> None:
    """Release a domain. Its users must then sign in with their passwords.

    If the tenant has an identity provider, the sessions of the domain's users end, except
    `exempt_session_key`. Raises Forbidden, NotFound.
    """
    actor.require(Permission.WRITE_SIGN_IN_SETTINGS)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)
        domain = find_domain(actor=actor, domain_id=domain_id)
        Domain.objects.filter(tenant_id=actor.tenant_id, id=domain_id).delete()
        VerifiedDomain.objects.filter(
            name=domain.name, holder_id=uuid.UUID(actor.tenant_id)
        ).delete()
        if domain.verified_at is not None:
            _end_sessions(actor, domain.name, exempt_session_key)
        _record_change(actor, "domain.given_up", domain.name, now)


def _end_sessions(actor: Actor, name: str, exempt_session_key: str | None) -> None:
    """End the sessions of the domain's users, if the tenant has an identity provider."""
    if IdentityProvider.objects.filter(tenant_id=actor.tenant_id).exists():
        end_sessions_of_domains(domains=[name], exempt_session_key=exempt_session_key)


def _register_domain(actor: Actor, name: str) -> None:
    """Register the domain as the tenant's. Raises Conflict if another tenant has registered it."""
    try:
        with transaction.atomic():
            VerifiedDomain.objects.create(name=name, holder_id=uuid.UUID(actor.tenant_id))
    except IntegrityError as error:
        raise Conflict("Another tenant has already verified {name}.", name=name) from error


def _record_change(actor: Actor, action: str, name: str, now: datetime) -> None:
    record_change(
        actor=actor, action=action, target=f"domain:{name}", change=(None, {"name": name}), now=now
    )
