"""Reads how a tenant's people sign in."""

import uuid
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings

from caret.foundation.crypto import derive_key
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenancy import tenant
from caret.foundation.sealing import unseal
from tenants.domains.queries import holder_of
from tenants.members.actor import Actor
from tenants.members.permissions import Permission
from tenants.models import IdentityProvider, Tenant


@dataclass(frozen=True, slots=True)
class ProviderView:
    """As its tenant sees it: without the secret."""

    issuer: str
    client_id: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SignInRules:
    requires_second_factor: bool
    provider: ProviderView | None  # None: passwords


@dataclass(frozen=True, slots=True)
class Provider:
    """For signing in by it."""

    tenant_id: TenantId
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)


def get_rules(*, actor: Actor) -> SignInRules:
    """Raises Forbidden."""
    actor.require(Permission.READ_ACCESS)
    with tenant(actor.tenant_id):
        required = Tenant.objects.get(id=actor.tenant_id).requires_second_factor
        row = _row(actor.tenant_id)
    found = None if row is None else ProviderView(row.issuer, row.client_id, row.created_at)
    return SignInRules(required, found)


def find_provider(tenant_id: TenantId) -> Provider | None:
    """For the platform itself, which lets people in: asks no role."""
    with tenant(tenant_id):
        row = _row(tenant_id)
    if row is None:
        return None
    secret = unseal(secret_key(), bytes(row.sealed_secret), bound_to=bound_to(tenant_id, row.id))
    return Provider(tenant_id, row.issuer, row.client_id, secret.decode())


def provider_for(email: str) -> Provider | None:
    """Whose identity provider lets the owner of an address in; None: nobody's, a password does."""
    holder = holder_of(email)
    return None if holder is None else find_provider(holder)


def secret_key() -> bytes:
    return derive_key(settings.ROOT_SECRET, "identity-providers/1")


def bound_to(tenant_id: TenantId, provider_id: uuid.UUID) -> bytes:
    return f"identity-provider|{tenant_id}|{provider_id}".encode()


def _row(tenant_id: TenantId) -> IdentityProvider | None:
    return IdentityProvider.objects.filter(tenant_id=tenant_id).order_by("id").first()
