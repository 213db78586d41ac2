"""Sign-in settings over REST: domains, identity providers, SCIM tokens and groups.

These settings can decide how a user signs in, and to which account. Wrong settings could give an
owner's account to another person. Therefore only owners may change them.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Literal

from django.utils import timezone
from ninja import Router, Status

from console.api.authentication import (
    AuthenticatedRequest,
    ServiceKeyCaller,
    actor_of,
    document_permissions,
)
from console.api.base_schema import RequestSchema, ResponseSchema
from console.api.openapi import SAFE_TO_REPEAT
from console.api.pagination import Items
from console.limits.outbound_limit import OUTBOUND_LIMIT
from console.sign_in.sessions.session_exemption import exempt_session
from tenants.base.permissions import Permission, Role
from tenants.identity.domains.dns_lookup import look_up_txt_records
from tenants.identity.domains.operations import claim_domain, release_domain, verify_domain
from tenants.identity.domains.queries import DomainView, list_domains
from tenants.identity.scim.groups import set_group_role
from tenants.identity.scim.queries import GroupRole, list_group_roles
from tenants.identity.scim.tokens import (
    ScimTokenView,
    create_scim_token,
    list_scim_tokens,
    revoke_scim_token,
)
from tenants.identity.sso.metadata_fetch import fetch_metadata
from tenants.identity.sso.operations import (
    OidcProviderConfig,
    SamlProviderConfig,
    remove_provider,
    set_provider,
    set_saml_provider,
    set_second_factor_required,
)
from tenants.identity.sso.queries import SignInRules, get_rules

sign_in = Router(tags=["sign_in_settings"])
domains = Router(tags=["domains"])
scim = Router(tags=["scim"])


class DomainResponse(ResponseSchema):
    id: uuid.UUID
    name: str
    txt_record: str  # the TXT record that proves the tenant's control of the domain
    created_at: datetime
    verified_at: datetime | None  # null: claimed, but not verified yet


class DomainList(ResponseSchema):
    items: Items[DomainResponse]  # sorted by name


class ClaimDomain(RequestSchema, json_schema_extra={"example": {"name": "example.com"}}):
    name: str


class ScimTokenResponse(ResponseSchema):
    id: uuid.UUID
    name: str
    created_at: datetime
    revoked_at: datetime | None  # null: active
    last_used_at: datetime | None  # to the minute; null: never


class ScimTokenList(ResponseSchema):
    items: Items[ScimTokenResponse]  # newest first


class CreateScimToken(RequestSchema, json_schema_extra={"example": {"name": "Entra ID"}}):
    name: str


class CreatedScimTokenResponse(ResponseSchema):
    text: str  # the secret token itself; returned only once
    token: ScimTokenResponse


class ScimGroupResponse(ResponseSchema):
    id: uuid.UUID  # also the ID of its team
    name: str
    role: Role | None  # role of its members; null: the group does not set roles


class ScimGroupList(ResponseSchema):
    items: Items[ScimGroupResponse]  # sorted by name


class SetGroupRole(RequestSchema, json_schema_extra={"example": {"role": "auditor"}}):
    role: Role | None  # any role but owner; null: the group does not set roles


class IdentityProviderResponse(ResponseSchema):
    protocol: Literal["oidc", "saml"]
    issuer: str  # for SAML: the entity ID
    client_id: str | None  # null for SAML
    sso_url: str | None  # null for OpenID Connect, which looks it up at each sign-in
    # For SAML: the SHA-256 of each signing certificate, in hex. For OpenID Connect: empty.
    fingerprints: list[str]
    created_at: datetime


class SignIn(ResponseSchema):
    is_mfa_required: bool  # for users who sign in with a password
    provider: IdentityProviderResponse | None  # null: users sign in with passwords


class SetSecondFactor(RequestSchema, json_schema_extra={"example": {"is_required": True}}):
    is_required: bool  # for users who sign in with a password


class SetProvider(
    RequestSchema,
    json_schema_extra={
        "example": {
            "issuer": "https://login.example.com",
            "client_id": "caret",
            "client_secret": "...",
        }
    },
):
    issuer: str  # the URL before /.well-known/openid-configuration
    client_id: str
    client_secret: str  # stored encrypted, never returned


class SetSamlProvider(
    RequestSchema,
    json_schema_extra={"example": {"metadata_url": "https://login.example.com/saml.xml"}},
):
    """The provider's SAML metadata. Give exactly one of the fields."""

    metadata: str | None = None  # XML
    metadata_url: str | None = None  # fetched once, during this request


@sign_in.get(
    "",
    response=SignIn,
    summary="Get the sign-in settings.",
    openapi_extra=document_permissions(Permission.READ_SIGN_IN_SETTINGS),
)
def get_sign_in(request: AuthenticatedRequest) -> SignInRules:
    return get_rules(actor=actor_of(request))


@sign_in.put(
    "/second-factor",
    response=SignIn,
    summary="Set whether users who sign in with a password need a second factor.",
    openapi_extra=document_permissions(Permission.WRITE_SIGN_IN_SETTINGS),
)
def set_second_factor(request: AuthenticatedRequest, body: SetSecondFactor) -> SignInRules:
    return set_second_factor_required(
        actor=actor_of(request), is_required=body.is_required, now=timezone.now()
    )


@sign_in.put(
    "/provider",
    response=SignIn,
    summary="Set the OpenID Connect provider; it replaces passwords for the verified domains.",
    openapi_extra=document_permissions(Permission.WRITE_SIGN_IN_SETTINGS),
)
def put_provider(request: AuthenticatedRequest, body: SetProvider) -> SignInRules:
    new = OidcProviderConfig(body.issuer, body.client_id, body.client_secret)
    with _exempt_own_session(request) as session_key:
        return set_provider(
            actor=actor_of(request), new=new, now=timezone.now(), exempt_session_key=session_key
        )


@sign_in.put(
    "/provider/saml",
    response=SignIn,
    summary="Set the SAML identity provider by its metadata, as text or as a URL.",
    openapi_extra=document_permissions(Permission.WRITE_SIGN_IN_SETTINGS),
)
def put_saml_provider(request: AuthenticatedRequest, body: SetSamlProvider) -> SignInRules:
    actor = actor_of(request)

    def fetch(url: str) -> str:
        # Raises BulkheadFull if the tenant has too many outgoing requests.
        with OUTBOUND_LIMIT.acquire(actor.tenant_id):
            return fetch_metadata(url)

    config = SamlProviderConfig(body.metadata, body.metadata_url, fetch)
    with _exempt_own_session(request) as session_key:
        return set_saml_provider(
            actor=actor, config=config, now=timezone.now(), exempt_session_key=session_key
        )


@sign_in.delete(
    "/provider",
    response=SignIn,
    summary="Remove the identity provider; passwords work again.",
    openapi_extra=document_permissions(Permission.WRITE_SIGN_IN_SETTINGS),
)
def delete_provider(request: AuthenticatedRequest) -> SignInRules:
    with _exempt_own_session(request) as session_key:
        return remove_provider(
            actor=actor_of(request), now=timezone.now(), exempt_session_key=session_key
        )


@domains.get(
    "",
    response=DomainList,
    summary="List claimed and verified e-mail domains.",
    openapi_extra=document_permissions(Permission.READ_SIGN_IN_SETTINGS),
)
def list_all(request: AuthenticatedRequest) -> dict[str, list[DomainView]]:
    return {"items": list_domains(actor=actor_of(request))}


@domains.post(
    "",
    response={201: DomainResponse},
    summary="Claim a domain; publish its TXT record in the DNS, then verify the domain.",
    openapi_extra=document_permissions(Permission.WRITE_SIGN_IN_SETTINGS),
)
def claim(request: AuthenticatedRequest, body: ClaimDomain) -> Status[object]:
    return Status(201, claim_domain(actor=actor_of(request), name=body.name, now=timezone.now()))


@domains.post(
    "/{domain_id}/verify",
    response=DomainResponse,
    summary="Verify a domain by looking up its TXT record in the DNS.",
    openapi_extra=document_permissions(Permission.WRITE_SIGN_IN_SETTINGS) | SAFE_TO_REPEAT,
)
def verify(request: AuthenticatedRequest, domain_id: uuid.UUID) -> DomainView:
    actor = actor_of(request)
    # Raises BulkheadFull if the tenant has too many outgoing requests.
    with OUTBOUND_LIMIT.acquire(actor.tenant_id), _exempt_own_session(request) as session_key:
        return verify_domain(
            actor=actor,
            domain_id=domain_id,
            resolve=look_up_txt_records,
            now=timezone.now(),
            exempt_session_key=session_key,
        )


@domains.delete(
    "/{domain_id}",
    response={204: None},
    summary="Release a domain.",
    openapi_extra=document_permissions(Permission.WRITE_SIGN_IN_SETTINGS),
)
def release(request: AuthenticatedRequest, domain_id: uuid.UUID) -> Status[None]:
    with _exempt_own_session(request) as session_key:
        release_domain(
            actor=actor_of(request),
            domain_id=domain_id,
            now=timezone.now(),
            exempt_session_key=session_key,
        )
    return Status(204, None)


@scim.get(
    "/tokens",
    response=ScimTokenList,
    summary="List SCIM tokens.",
    openapi_extra=document_permissions(Permission.READ_SIGN_IN_SETTINGS),
)
def list_tokens(request: AuthenticatedRequest) -> dict[str, list[ScimTokenView]]:
    return {"items": list_scim_tokens(actor=actor_of(request))}


@scim.post(
    "/tokens",
    response={201: CreatedScimTokenResponse},
    summary="Create a SCIM token; only this response contains its text.",
    openapi_extra=document_permissions(Permission.WRITE_SIGN_IN_SETTINGS),
)
def create_token(request: AuthenticatedRequest, body: CreateScimToken) -> Status[object]:
    token = create_scim_token(actor=actor_of(request), name=body.name, now=timezone.now())
    return Status(201, token)


@scim.post(
    "/tokens/{token_id}/revoke",
    response=ScimTokenResponse,
    summary="Revoke a SCIM token.",
    openapi_extra=document_permissions(Permission.WRITE_SIGN_IN_SETTINGS),
)
def revoke_token(request: AuthenticatedRequest, token_id: uuid.UUID) -> ScimTokenView:
    return revoke_scim_token(actor=actor_of(request), token_id=token_id, now=timezone.now())


@scim.get(
    "/groups",
    response=ScimGroupList,
    summary="List the identity provider's groups with the roles of their members.",
    openapi_extra=document_permissions(Permission.READ_SIGN_IN_SETTINGS),
)
def list_groups(request: AuthenticatedRequest) -> dict[str, list[GroupRole]]:
    return {"items": list_group_roles(actor=actor_of(request))}


@scim.put(
    "/groups/{group_id}/role",
    response=SetGroupRole,
    summary="Set the role of a group's members: any role but owner, or null for none.",
    openapi_extra=document_permissions(Permission.WRITE_SIGN_IN_SETTINGS),
)
def set_role(
    request: AuthenticatedRequest, group_id: uuid.UUID, body: SetGroupRole
) -> dict[str, object]:
    set_group_role(actor=actor_of(request), group_id=group_id, role=body.role, now=timezone.now())
    return {"role": body.role}


@contextmanager
def _exempt_own_session(request: AuthenticatedRequest) -> Iterator[str | None]:
    """Keep the caller's session while the change in the block ends other sessions.

    Yields the key of the caller's session; None if the caller has a service key.
    """
    if isinstance(request.auth, ServiceKeyCaller):
        yield None
        return
    tenant_id = request.auth.actor.tenant_id
    with exempt_session(request, tenant_id, request.auth.email) as session_key:
        yield session_key
