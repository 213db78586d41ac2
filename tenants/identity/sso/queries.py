"""Reads how a tenant's people sign in."""

import uuid
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings

from caret.foundation.crypto.aead import unseal
from caret.foundation.crypto.key_derivation import derive_key
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Permission
from tenants.identity.domains.queries import find_owning_tenant
from tenants.identity.sso.saml_metadata import fingerprint
from tenants.models import IdentityProvider, SignInProtocol, Tenant
from tenants.security.authorization.actor import Actor


@dataclass(frozen=True, slots=True)
class ProviderView:
    """As its tenant sees it: without the secret."""

    protocol: SignInProtocol
    issuer: str
    client_id: str | None  # None: SAML has none
    sso_url: str | None  # None: OpenID Connect asks for it each time
    fingerprints: list[str]  # of the certificates that sign, SHA-256 in hex; OpenID Connect: none
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SignInRules:
    is_mfa_required: bool
    provider: ProviderView | None  # None: passwords


@dataclass(frozen=True, slots=True)
class OpenIdProvider:
    """For signing in by it."""

    tenant_id: TenantId
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SamlProvider:
    """For signing in by it."""

    tenant_id: TenantId
    issuer: str  # its entity id
    sso_url: str
    certificates: tuple[str, ...]  # DER as base64; any of them signs


Provider = OpenIdProvider | SamlProvider


def get_rules(*, actor: Actor) -> SignInRules:
    """Raises Forbidden."""
    actor.require(Permission.READ_SIGN_IN_SETTINGS)
    with tenant_scope(actor.tenant_id):
        required = Tenant.objects.get(id=actor.tenant_id).is_mfa_required
        row = _row(actor.tenant_id)
    return SignInRules(required, None if row is None else _view(row))


def find_provider(tenant_id: TenantId) -> Provider | None:
    """For the platform itself, which lets people in: asks no role."""
    with tenant_scope(tenant_id):
        row = _row(tenant_id)
    if row is None:
        return None
    if row.protocol == SignInProtocol.SAML:
        return SamlProvider(tenant_id, row.issuer, row.sso_url, tuple(row.certificates.split()))
    secret = unseal(secret_key(), bytes(row.sealed_secret), bound_to=bound_to(tenant_id, row.id))
    return OpenIdProvider(tenant_id, row.issuer, row.client_id, secret.decode())


def provider_for(email: str) -> Provider | None:
    """Whose identity provider lets the owner of an address in; None: nobody's, a password does."""
    holder = find_owning_tenant(email)
    return None if holder is None else find_provider(holder)


def secret_key() -> bytes:
    return derive_key(settings.ROOT_SECRET, "identity-providers/1")


def bound_to(tenant_id: TenantId, provider_id: uuid.UUID) -> bytes:
    return f"identity-provider|{tenant_id}|{provider_id}".encode()


def _view(row: IdentityProvider) -> ProviderView:
    return ProviderView(
        protocol=SignInProtocol(row.protocol),
        issuer=row.issuer,
        client_id=row.client_id or None,
        sso_url=row.sso_url or None,
        fingerprints=[fingerprint(text) for text in row.certificates.split()],
        created_at=row.created_at,
    )


def _row(tenant_id: TenantId) -> IdentityProvider | None:
    return IdentityProvider.objects.filter(tenant_id=tenant_id).order_by("id").first()
