"""Operations on sign-in settings, and on sign-ins through a tenant's identity provider.

Of a tenant's members, only owners may change its sign-in settings.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit
from uuid import uuid4

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from onelogin.saml2.settings import validate_url

from caret.contracts.snapshot import TenantStatus
from caret.foundation.crypto.aead import seal
from caret.foundation.ids import TenantId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Forbidden, InvalidValue
from tenants.base.permissions import Permission, Role
from tenants.base.redis_connection import connect_to_redis
from tenants.base.validation.text import is_storable, parse_reason, validate_text
from tenants.identity.domains.queries import find_owning_tenant
from tenants.identity.members.sessions import end_sessions_of_domains
from tenants.identity.sso.queries import (
    SignInRules,
    build_associated_data,
    derive_provider_key,
    get_rules,
)
from tenants.identity.sso.saml_metadata import SamlMetadata, compute_fingerprint, parse_metadata
from tenants.models import Domain, IdentityProvider, SignInProtocol, Tenant, User
from tenants.security.audit.operations import ChangeFields, record_change
from tenants.security.authorization.actor import Actor

_MAX_CHARS: Final = 200  # of a client ID or secret
_MAX_EMAIL_CHARS: Final = 254  # the column's length
_MAX_NAME_CHARS: Final = 120  # of a user: the column's length
_MAX_URL_CHARS: Final = 500  # of an issuer or a sign-in URL: the columns' length
MAX_REFUSED_ENTRIES: Final = 10  # audit entries of a tenant in an hour for each reason
# The reason why a SAML response was refused: no certificate of the metadata has signed it.
UNKNOWN_CERTIFICATE: Final = "invalid_signature"
_HOUR_S: Final = 3600


@dataclass(frozen=True, slots=True)
class OidcProviderConfig:
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SamlProviderConfig:
    """The metadata of a SAML provider, or its URL. Exactly one of the two must be set."""

    metadata: str | None  # XML
    url: str | None  # of the metadata
    fetch: Callable[[str], str]  # returns the metadata at a URL; raises InvalidValue


def set_provider(
    *, actor: Actor, new: OidcProviderConfig, now: datetime, exempt_session_key: str | None = None
) -> SignInRules:
    """Set an OpenID Connect provider in place of the current one.

    Users of the tenant's verified domains can no longer sign in with a password. Their sessions
    end, except the session with the key `exempt_session_key`. Raises Forbidden, InvalidValue.
    """
    actor.require(Permission.WRITE_SIGN_IN_SETTINGS)
    _check_provider(new)
    provider_id = uuid.uuid4()
    sealed_secret = seal(
        derive_provider_key(),
        new.client_secret.encode(),
        bound_to=build_associated_data(actor.tenant_id, provider_id),
    )
    provider = IdentityProvider(
        tenant_id=actor.tenant_id,
        id=provider_id,
        protocol=SignInProtocol.OIDC,
        issuer=new.issuer,
        client_id=new.client_id,
        sealed_secret=sealed_secret,
        sso_url="",
        certificates="",
        created_at=now,
    )
    facts: ChangeFields = {"issuer": new.issuer, "client_id": new.client_id}
    return _replace_provider(actor, provider, facts, exempt_session_key)


def set_saml_provider(
    *,
    actor: Actor,
    config: SamlProviderConfig,
    now: datetime,
    exempt_session_key: str | None = None,
) -> SignInRules:
    """Set a SAML provider from its metadata, in place of the current provider.

    The effect on passwords and sessions is the same as in `set_provider`. Raises Forbidden,
    InvalidValue.
    """
    actor.require(Permission.WRITE_SIGN_IN_SETTINGS)
    new = parse_metadata(_fetch_metadata(config))
    _check_saml(new)
    provider = IdentityProvider(
        tenant_id=actor.tenant_id,
        protocol=SignInProtocol.SAML,
        issuer=new.entity_id,
        client_id="",
        sealed_secret=b"",
        sso_url=new.sso_url,
        certificates="\n".join(new.certificates),
        created_at=now,
    )
    facts: ChangeFields = {
        "issuer": new.entity_id,
        "sso_url": new.sso_url,
        "certificates": " ".join(map(compute_fingerprint, new.certificates)),
    }
    return _replace_provider(actor, provider, facts, exempt_session_key)


def _fetch_metadata(config: SamlProviderConfig) -> str:
    """Return the metadata of the configuration, or fetch it. Raises InvalidValue."""
    if (config.metadata is None) == (config.url is None):
        raise InvalidValue("metadata", "Enter either metadata or metadata_url.")
    if config.url is None:
        return str(config.metadata)
    if not _is_allowed_url(config.url):
        raise InvalidValue("metadata_url", "Enter a URL that starts with https://.")
    return config.fetch(config.url)


def _replace_provider(
    actor: Actor, provider: IdentityProvider, facts: ChangeFields, exempt_session_key: str | None
) -> SignInRules:
    with tenant_scope(actor.tenant_id):
        # Locks the tenant: of two concurrent calls, the second replaces the first one's provider.
        Tenant.objects.select_for_update(no_key=True).get(id=actor.tenant_id)
        IdentityProvider.objects.filter(tenant_id=actor.tenant_id).delete()
        provider.save(force_insert=True)
        _end_sessions(actor, exempt_session_key)
        record_change(
            actor=actor,
            action="identity_provider.set",
            target="identity_provider",
            change=(None, facts),
            now=provider.created_at,
        )
    return get_rules(actor=actor)


def remove_provider(
    *, actor: Actor, now: datetime, exempt_session_key: str | None = None, reason: str = ""
) -> SignInRules:
    """Remove the provider, if there is one.

    The sessions of its users end, except the session with the key `exempt_session_key`. Raises
    Forbidden, InvalidValue.
    """
    actor.require(Permission.WRITE_SIGN_IN_SETTINGS)
    reason = parse_reason(reason)
    with tenant_scope(actor.tenant_id):
        if IdentityProvider.objects.filter(tenant_id=actor.tenant_id).delete()[0]:
            _end_sessions(actor, exempt_session_key)
            record_change(
                actor=actor,
                action="identity_provider.removed",
                target="identity_provider",
                change=(None, None),
                reason=reason,
                now=now,
            )
    return get_rules(actor=actor)


def set_second_factor_required(*, actor: Actor, is_required: bool, now: datetime) -> SignInRules:
    """Set whether users who sign in with a password need a second factor.

    While it is required, users without a second factor can only set one up. Raises Forbidden.
    """
    actor.require(Permission.WRITE_SIGN_IN_SETTINGS)
    with tenant_scope(actor.tenant_id):
        rows = Tenant.objects.filter(id=actor.tenant_id).exclude(is_mfa_required=is_required)
        if rows.update(is_mfa_required=is_required):
            record_change(
                actor=actor,
                action="mfa.required" if is_required else "mfa.made_optional",
                target="second_factor",
                change=(None, None),
                now=now,
            )
    return get_rules(actor=actor)


def provision_user(*, tenant_id: TenantId, email: str, name: str, now: datetime) -> UserId:
    """Return the account of a user of the identity provider. Create it if it does not exist.

    Raises Forbidden if the tenant has not verified the domain of the e-mail address, or is closed.
    """
    email = normalize_address(email)
    if find_owning_tenant(email) != tenant_id or not _is_address(email):
        raise Forbidden(
            "Your identity provider is not allowed to sign in users of this e-mail domain."
        )
    if Tenant.objects.get(id=tenant_id).status == TenantStatus.CLOSED:
        raise Forbidden("This tenant is closed.")
    user, _ = User.objects.get_or_create(
        email=email,
        # No password matches "!".
        defaults={"name": _clean_name(name), "created_at": now, "password": "!"},
    )
    return UserId(str(user.id))


def normalize_address(email: str) -> str:
    """Return an address of an identity provider in the form in which accounts have it."""
    return email.strip().lower()


def _end_sessions(actor: Actor, exempt_session_key: str | None) -> None:
    """End the sessions of users of the tenant's verified domains, except the exempt session."""
    verified = Domain.objects.filter(tenant_id=actor.tenant_id, verified_at__isnull=False)
    end_sessions_of_domains(
        domains=verified.values_list("name", flat=True), exempt_session_key=exempt_session_key
    )


def _is_address(text: str) -> bool:
    try:
        validate_email(text)
    except ValidationError:
        return False
    return len(text) <= _MAX_EMAIL_CHARS


def _clean_name(name: str) -> str:
    """Return a name that can be stored; "" if it has characters that cannot be stored."""
    return name.strip()[:_MAX_NAME_CHARS] if is_storable(name) else ""


def _check_provider(new: OidcProviderConfig) -> None:
    """Check the settings of an OpenID Connect provider. Raises InvalidValue."""
    if not _is_allowed_url(new.issuer):
        raise InvalidValue("issuer", "Enter the issuer's URL. It starts with https://.")
    for name, text in (("client_id", new.client_id), ("client_secret", new.client_secret)):
        validate_text(name, text)
        if not 1 <= len(text.strip()) <= _MAX_CHARS:
            raise InvalidValue(name, "Enter 1 to {most} characters.", most=_MAX_CHARS)


def _check_saml(new: SamlMetadata) -> None:
    """Check the metadata of a SAML provider. Raises InvalidValue."""
    url = new.sso_url
    # python3-saml calls validate_url at each sign-in, and would reject the URL only then.
    if not _is_allowed_url(url) or not validate_url(url, allow_single_label_domain=True):
        raise InvalidValue("metadata", "The provider's sign-in URL must start with https://.")
    validate_text("metadata", new.entity_id)
    if not 1 <= len(new.entity_id) <= _MAX_URL_CHARS:
        raise InvalidValue(
            "metadata", "The entity ID must have 1 to {most} characters.", most=_MAX_URL_CHARS
        )


def _is_allowed_url(text: str) -> bool:
    """Return whether a text is an https URL; http is allowed if private targets are allowed."""
    schemes = ("https", "http") if settings.PRIVATE_TARGETS else ("https",)
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme in schemes and bool(parts.hostname) and not parts.username
        _ = parts.port  # raises ValueError for an invalid port
    except ValueError:
        return False
    is_plain = text.isascii() and text.isprintable() and " " not in text
    return is_valid and is_plain and len(text) <= _MAX_URL_CHARS


def record_refused_sign_in(
    *, tenant_id: TenantId, reason: str, address: str, now: datetime
) -> None:
    """Record a refused sign-in through the identity provider in the tenant's audit log.

    `reason` is one of a fixed set of codes, and `address` is the client's IP address. Anybody can
    send a response that is refused. Therefore, at most MAX_REFUSED_ENTRIES an hour are recorded for
    each reason. The process log contains all refusals (`sign_in.provider_failed`). Raises
    redis.RedisError.
    """
    if not _count_refused_sign_in(tenant_id, reason):
        return
    # Like build_system_actor, but with the client's address and a request ID.
    platform = Actor(tenant_id, None, Role.OWNER, address, request_id=str(uuid4()))
    with tenant_scope(tenant_id):
        record_change(
            actor=platform,
            action="sign_in.refused",
            target="identity_provider",
            change=(None, {"reason": reason}),
            now=now,
        )


def _count_refused_sign_in(tenant_id: TenantId, reason: str) -> bool:
    """Count a refused sign-in. Return whether it may be recorded."""
    redis_key = f"caret:refused-sign-ins:{tenant_id}:{reason}"
    pipeline = connect_to_redis().pipeline(transaction=True)
    pipeline.set(redis_key, 0, ex=_HOUR_S, nx=True)
    pipeline.incr(redis_key)
    _, num_refused = pipeline.execute()
    return int(num_refused) <= MAX_REFUSED_ENTRIES
