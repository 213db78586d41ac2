"""Queries of sign-in settings and identity providers."""

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
from tenants.identity.sso.saml_metadata import compute_fingerprint
from tenants.models import IdentityProvider, SignInProtocol, Tenant
from tenants.policy.queries import load_active_policy
from tenants.security.authorization.actor import Actor


@dataclass(frozen=True, slots=True)
class ProviderView:
    """An identity provider without its secret, as the tenant sees it."""

    protocol: SignInProtocol
    issuer: str
    client_id: str | None  # None for SAML
    sso_url: str | None  # None for OpenID Connect, which discovers it at each sign-in
    fingerprints: list[str]  # SHA-256 in hex of the signing certificates; empty for OpenID Connect
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SignInRules:
    is_mfa_required: bool  # for users who sign in with passwords
    provider: ProviderView | None  # None: users sign in with passwords
    # The policy can require a second factor, too. Either requirement suffices.
    is_mfa_required_by_policy: bool = False


@dataclass(frozen=True, slots=True)
class OpenIdProvider:
    """An OpenID Connect provider with the client's secret, for signing in."""

    tenant_id: TenantId
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SamlProvider:
    """A SAML provider, for signing in."""

    tenant_id: TenantId
    issuer: str  # its entity ID
    sso_url: str
    certificates: tuple[str, ...]  # DER in base64; any of them may sign


Provider = OpenIdProvider | SamlProvider


def get_rules(*, actor: Actor) -> SignInRules:
    """Return the sign-in settings. Raises Forbidden."""
    actor.require(Permission.READ_SIGN_IN_SETTINGS)
    with tenant_scope(actor.tenant_id):
        is_mfa_required = Tenant.objects.get(id=actor.tenant_id).is_mfa_required
        row = _find_row(actor.tenant_id)
    return SignInRules(
        is_mfa_required,
        None if row is None else _to_view(row),
        load_active_policy(tenant_id=actor.tenant_id).is_mfa_required,
    )


def find_provider(tenant_id: TenantId) -> Provider | None:
    """Return a tenant's identity provider, for signing in. Checks no permission."""
    with tenant_scope(tenant_id):
        row = _find_row(tenant_id)
    if row is None:
        return None
    if row.protocol == SignInProtocol.SAML:
        return SamlProvider(tenant_id, row.issuer, row.sso_url, tuple(row.certificates.split()))
    secret = unseal(
        derive_provider_key(),
        bytes(row.sealed_secret),
        bound_to=build_associated_data(tenant_id, row.id),
    )
    return OpenIdProvider(tenant_id, row.issuer, row.client_id, secret.decode())


def find_provider_id(tenant_id: TenantId) -> uuid.UUID | None:
    """Return the ID of a tenant's identity provider, which changes with each new configuration.

    None: the tenant has no provider. Checks no permission.
    """
    with tenant_scope(tenant_id):
        row = _find_row(tenant_id)
    return None if row is None else row.id


def find_provider_for_email(email: str) -> Provider | None:
    """Return the identity provider that users with this e-mail address must use.

    None: they sign in with a password.
    """
    tenant_id = find_owning_tenant(email)
    return None if tenant_id is None else find_provider(tenant_id)


def derive_provider_key() -> bytes:
    """Return the encryption key for the client secrets of OpenID Connect providers."""
    return derive_key(settings.ROOT_SECRET, "identity-providers/1")


def build_associated_data(tenant_id: TenantId, provider_id: uuid.UUID) -> bytes:
    """Return the context that the encryption of a client secret is bound to."""
    return f"identity-provider|{tenant_id}|{provider_id}".encode()


def _to_view(row: IdentityProvider) -> ProviderView:
    return ProviderView(
        protocol=SignInProtocol(row.protocol),
        issuer=row.issuer,
        client_id=row.client_id or None,
        sso_url=row.sso_url or None,
        fingerprints=[compute_fingerprint(text) for text in row.certificates.split()],
        created_at=row.created_at,
    )


def _find_row(tenant_id: TenantId) -> IdentityProvider | None:
    return IdentityProvider.objects.filter(tenant_id=tenant_id).order_by("id").first()
