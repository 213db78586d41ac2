"""Domains, and what an identity provider may tell us by SCIM, over REST.

Each write here decides in the end who signs in as whom, the owner included: owners alone may.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Literal

from django.utils import timezone
from ninja import Router, Status

from console.api.authentication import AuthenticatedRequest, Bearer, actor_of, documents_permissions
from console.api.base_schema import RequestSchema, ResponseSchema
from console.api.openapi import DONE_ANEW
from console.outbound_limit import OUTWARD
from console.sign_in.session_exemption import exempt_session
from tenants.base.permissions import Permission, Role
from tenants.identity.domains.dns_lookup import txt_records
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
    require_second_factor,
    set_provider,
    set_saml_provider,
)
from tenants.identity.sso.queries import SignInRules, get_rules

sign_in = Router(tags=["sign_in"])
domains = Router(tags=["domains"])
scim = Router(tags=["scim"])


class DomainResponse(ResponseSchema):
    id: uuid.UUID
    name: str
    txt_record: str  # what a TXT record of the domain must be
    created_at: datetime
    verified_at: datetime | None  # null: claimed only


class DomainList(ResponseSchema):
    rows: list[DomainResponse]  # by name


class ClaimDomain(RequestSchema, json_schema_extra={"example": {"name": "example.com"}}):
    name: str


class ScimTokenResponse(ResponseSchema):
    id: uuid.UUID
    name: str
    created_at: datetime
    revoked_at: datetime | None  # null: in force
    last_used_at: datetime | None  # to the minute


class ScimTokenList(ResponseSchema):
    rows: list[ScimTokenResponse]  # newest first


class CreateScimToken(RequestSchema, json_schema_extra={"example": {"name": "Entra ID"}}):
    name: str


class CreatedScimTokenResponse(ResponseSchema):
    text: str  # shown this once
    token: ScimTokenResponse


class ScimGroupResponse(ResponseSchema):
    id: uuid.UUID  # of the team, too
    name: str
    role: Role | None  # what it makes of its members; null: it says nothing of that


class ScimGroupList(ResponseSchema):
    rows: list[ScimGroupResponse]  # by name


class SetGroupRole(RequestSchema, json_schema_extra={"example": {"role": "auditor"}}):
    role: Role | None


class IdentityProviderResponse(ResponseSchema):
    protocol: Literal["oidc", "saml"]
    issuer: str  # SAML: the entity id
    client_id: str | None  # null: SAML has none
    sso_url: str | None  # null: OpenID Connect asks for it each time
    fingerprints: list[str]  # of the certificates that sign, SHA-256 in hex; OpenID Connect: none
    created_at: datetime


class SignIn(ResponseSchema):
    is_mfa_required: bool
    provider: IdentityProviderResponse | None  # null: people sign in by their passwords


class SetSecondFactor(RequestSchema, json_schema_extra={"example": {"required": True}}):
    required: bool


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
    issuer: str  # below it stands .well-known/openid-configuration
    client_id: str
    client_secret: str  # kept sealed, in no answer


class SetSamlProvider(
    RequestSchema,
    json_schema_extra={"example": {"metadata_url": "https://login.example.com/saml.xml"}},
):
    """One of the two."""

    metadata: str | None = None  # XML
    metadata_url: str | None = None  # fetched now and never again


@sign_in.get(
    "",
    response=SignIn,
    summary="How people sign in.",
    openapi_extra=documents_permissions(Permission.READ_SIGN_IN_SETTINGS),
)
def get_sign_in(request: AuthenticatedRequest) -> SignInRules:
    return get_rules(actor=actor_of(request))


@sign_in.put(
    "/second-factor",
    response=SignIn,
    summary="Say whether who signs in by a password needs a second factor.",
    openapi_extra=documents_permissions(Permission.WRITE_SIGN_IN_SETTINGS),
)
def set_second_factor(request: AuthenticatedRequest, asked: SetSecondFactor) -> SignInRules:
    return require_second_factor(
        actor=actor_of(request), required=asked.required, now=timezone.now()
    )


@sign_in.put(
    "/provider",
    response=SignIn,
    summary="Set the identity provider; no password works for its domains from then on.",
    openapi_extra=documents_permissions(Permission.WRITE_SIGN_IN_SETTINGS),
)
def put_provider(request: AuthenticatedRequest, asked: SetProvider) -> SignInRules:
    new = OidcProviderConfig(asked.issuer, asked.client_id, asked.client_secret)
    with _spared(request) as session:
        return set_provider(
            actor=actor_of(request), new=new, now=timezone.now(), spared_session=session
        )


@sign_in.put(
    "/provider/saml",
    response=SignIn,
    summary="Set the identity provider by its SAML metadata, as text or where they are.",
    openapi_extra=documents_permissions(Permission.WRITE_SIGN_IN_SETTINGS),
)
def put_saml_provider(request: AuthenticatedRequest, asked: SetSamlProvider) -> SignInRules:
    actor = actor_of(request)

    def fetch(url: str) -> str:
        with OUTWARD.acquire(actor.tenant_id):
            return fetch_metadata(url)

    described = SamlProviderConfig(asked.metadata, asked.metadata_url, fetch)
    with _spared(request) as session:
        return set_saml_provider(
            actor=actor, described=described, now=timezone.now(), spared_session=session
        )


@sign_in.delete(
    "/provider",
    response=SignIn,
    summary="Take the identity provider away; passwords work again.",
    openapi_extra=documents_permissions(Permission.WRITE_SIGN_IN_SETTINGS),
)
def delete_provider(request: AuthenticatedRequest) -> SignInRules:
    with _spared(request) as session:
        return remove_provider(actor=actor_of(request), now=timezone.now(), spared_session=session)


@domains.get(
    "",
    response=DomainList,
    summary="List domains of e-mail addresses, claimed and verified.",
    openapi_extra=documents_permissions(Permission.READ_SIGN_IN_SETTINGS),
)
def list_all(request: AuthenticatedRequest) -> dict[str, list[DomainView]]:
    return {"rows": list_domains(actor=actor_of(request))}


@domains.post(
    "",
    response={201: DomainResponse},
    summary="Claim a domain; put its TXT record into the DNS, then have it verified.",
    openapi_extra=documents_permissions(Permission.WRITE_SIGN_IN_SETTINGS),
)
def claim(request: AuthenticatedRequest, asked: ClaimDomain) -> Status[object]:
    return Status(201, claim_domain(actor=actor_of(request), name=asked.name, now=timezone.now()))


@domains.post(
    "/{domain_id}/verify",
    response=DomainResponse,
    summary="Have the DNS asked for a domain's TXT record.",
    openapi_extra=documents_permissions(Permission.WRITE_SIGN_IN_SETTINGS) | DONE_ANEW,
)
def verify(request: AuthenticatedRequest, domain_id: uuid.UUID) -> DomainView:
    actor = actor_of(request)
    with OUTWARD.acquire(actor.tenant_id), _spared(request) as session:
        return verify_domain(
            actor=actor,
            domain_id=domain_id,
            resolve=txt_records,
            now=timezone.now(),
            spared_session=session,
        )


@domains.delete(
    "/{domain_id}",
    response={204: None},
    summary="Give a domain up.",
    openapi_extra=documents_permissions(Permission.WRITE_SIGN_IN_SETTINGS),
)
def release(request: AuthenticatedRequest, domain_id: uuid.UUID) -> Status[None]:
    with _spared(request) as session:
        release_domain(
            actor=actor_of(request), domain_id=domain_id, now=timezone.now(), spared_session=session
        )
    return Status(204, None)


@scim.get(
    "/tokens",
    response=ScimTokenList,
    summary="List the tokens of identity providers.",
    openapi_extra=documents_permissions(Permission.READ_SIGN_IN_SETTINGS),
)
def list_tokens(request: AuthenticatedRequest) -> dict[str, list[ScimTokenView]]:
    return {"rows": list_scim_tokens(actor=actor_of(request))}


@scim.post(
    "/tokens",
    response={201: CreatedScimTokenResponse},
    summary="Make a token for an identity provider; its text is in this answer only.",
    openapi_extra=documents_permissions(Permission.WRITE_SIGN_IN_SETTINGS),
)
def create_token(request: AuthenticatedRequest, asked: CreateScimToken) -> Status[object]:
    made = create_scim_token(actor=actor_of(request), name=asked.name, now=timezone.now())
    return Status(201, made)


@scim.post(
    "/tokens/{token_id}/revoke",
    response=ScimTokenResponse,
    summary="Revoke a token of an identity provider; it opens nothing from then on.",
    openapi_extra=documents_permissions(Permission.WRITE_SIGN_IN_SETTINGS),
)
def revoke_token(request: AuthenticatedRequest, token_id: uuid.UUID) -> ScimTokenView:
    return revoke_scim_token(actor=actor_of(request), token_id=token_id, now=timezone.now())


@scim.get(
    "/groups",
    response=ScimGroupList,
    summary="List an identity provider's groups, and what they make of their members.",
    openapi_extra=documents_permissions(Permission.READ_SIGN_IN_SETTINGS),
)
def list_groups(request: AuthenticatedRequest) -> dict[str, list[GroupRole]]:
    return {"rows": list_group_roles(actor=actor_of(request))}


@scim.put(
    "/groups/{group_id}/role",
    response=SetGroupRole,
    summary="Say what a group makes of its members: any role but owner, or null for nothing.",
    openapi_extra=documents_permissions(Permission.WRITE_SIGN_IN_SETTINGS),
)
def set_role(
    request: AuthenticatedRequest, group_id: uuid.UUID, asked: SetGroupRole
) -> dict[str, object]:
    role = set_group_role(
        actor=actor_of(request), group_id=group_id, role=asked.role, now=timezone.now()
    )
    return {"role": role}


@contextmanager
def _spared(request: AuthenticatedRequest) -> Iterator[str | None]:
    """The key of the session that changes how people sign in, if it is one."""
    if isinstance(request.auth, Bearer):
        yield None
        return
    tenant_id = request.auth.actor.tenant_id
    with exempt_session(request, tenant_id, request.auth.email) as session:
        yield session
