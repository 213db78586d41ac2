"""Tenants over REST for the operators' provisioning scripts, with operator keys.

Sessions and the API keys of tenants are rejected. The response to the invitation of an owner
contains the invitation's link. The operator can pass this link on if the e-mail does not arrive.
"""

from datetime import date, datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID, uuid4

from django.http import HttpRequest
from django.utils import timezone
from ninja import Query, Router, Status
from ninja.security import HttpBearer
from pydantic import Field

from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId
from caret.foundation.web.credential_notes import note_credential
from console.api.base_schema import RequestSchema, ResponseSchema
from console.api.openapi import SAFE_TO_REPEAT
from console.api.pagination import Items, PageQuery, PageResponse
from console.api.rate_limit import count_request
from console.sign_in.current_member import client_address
from tenants.base.errors import Unauthenticated
from tenants.base.operator_roles import OperatorScope
from tenants.base.pagination import Page
from tenants.compliance.exports.jobs.state_machine import JobState
from tenants.compliance.tenant_closing import TenantClosure, find_closure
from tenants.fleet.operators.keys import (
    OperatorKeyView,
    authenticate_operator_key,
    build_operator_key_actor,
)
from tenants.fleet.operators.operations import TenantChange, appoint_owner, update_tenant
from tenants.fleet.operators.queries import TenantDirectoryRow, find_by_slug, list_directory
from tenants.fleet.pools.assignments import onboard_in_pools
from tenants.identity.tenant_lifecycle import (
    NewTenant,
    OwnerInvitation,
    invite_owner,
)
from tenants.security.authorization.actor import Actor


class OperatorKeyAuth(HttpBearer):
    """`Authorization: Bearer cpk_ops_...`. It uses no session, so it needs no CSRF token."""

    def __call__(self, request: HttpRequest) -> OperatorKeyView:
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthenticated(
                "missing_api_key", "Send an operator key as 'Authorization: Bearer <key>'."
            )
        return self.authenticate(request, text.strip())

    def authenticate(self, request: HttpRequest, token: str) -> OperatorKeyView:
        """Return the operator key, and count the request for the rate limit.

        Raises Unauthenticated, and ProblemRaised if the key sent too many requests.
        """
        key = authenticate_operator_key(text=token, now=timezone.now())
        note_credential(request)  # the server marks the connection as authenticated
        count_request(f"operator:{key.caller}")
        return key


class OperatorRequest(HttpRequest):
    """A request that passed OperatorKeyAuth."""

    auth: OperatorKeyView


router = Router(tags=["tenants"], auth=OperatorKeyAuth())
# For `openapi_extra`. Operators have scopes instead of a role's permissions.
_FOR_OPERATORS: Final[dict[str, Any]] = {"x-permissions": [], "x-open-to": "operators"}
# A repeated request does no harm: a slug can be used only once, a member can become an owner only
# once, and the same person can be invited twice.
_SAFE_TO_REPEAT: Final = _FOR_OPERATORS | SAFE_TO_REPEAT
_Text = Annotated[str, Field(max_length=1_000)]
_Pools = Annotated[list[_Text], Field(max_length=10)]


class CreateTenant(
    RequestSchema,
    json_schema_extra={
        "example": {
            "slug": "acme",
            "name": "Acme Robotics",
            "owner_email": "olga@acme.example",
            "plan": "team",
        }
    },
):
    slug: _Text
    name: _Text
    owner_email: _Text
    plan: _Text | None = None  # slug of a plan; null: the tenant is not billed
    region: _Text | None = None  # where its data is stored; null: the region of the installation
    # At most one pool of each tier, for all languages.
    pools: _Pools = Field(default_factory=list)
    trial_ends_on: date | None = None  # last day (UTC) with completions; null: no trial


class ChangeTenant(
    RequestSchema, json_schema_extra={"example": {"status": "suspended", "reason": "Unpaid"}}
):
    name: _Text | None = None  # null: unchanged
    # "closing" starts the grace period. During this period, "active" and "suspended" cancel the
    # closing. "closed" ends the period at once: the data is deleted, which cannot be undone. Null:
    # unchanged.
    status: Literal["active", "suspended", "closing", "closed"] | None = None
    # Only for the status "closing". Null: the setting of the installation.
    grace_days: int | None = None
    # The last day (UTC) with completions. Null: no trial any more. Left out: unchanged.
    trial_ends_on: date | None = None
    reason: _Text  # for the tenant's audit log


class InviteOwner(
    RequestSchema, json_schema_extra={"example": {"owner_email": "olga@acme.example"}}
):
    owner_email: _Text


class AppointOwner(
    RequestSchema,
    json_schema_extra={"example": {"email": "adam@acme.example", "reason": "Olga has left"}},
):
    email: _Text  # of the member who becomes an owner
    reason: _Text  # for the tenant's audit log


class PlatformTenantResponse(ResponseSchema):
    slug: str
    name: str
    status: TenantStatus
    region: str
    trial_ends_on: date | None  # last day (UTC) with completions; null: no trial
    closes_at: datetime | None  # end of the grace period; null: not closing
    created_at: datetime


class FinalExportResponse(ResponseSchema):
    id: UUID  # owners download it in the console, under Exports
    state: JobState
    num_bytes: int  # 0: no file yet
    expires_at: datetime | None  # null: no file yet


class TenantClosureResponse(ResponseSchema):
    closes_at: datetime | None  # end of the grace period; null: not closing, or already erased
    final_export: FinalExportResponse | None  # null: the tenant was never closing
    is_erasing: bool  # true: its encryption keys are destroyed, and its data is being deleted
    erased_at: datetime | None  # null: not erased
    certificate: str | None  # the signed deletion certificate, a JSON document; null: not erased


class PlatformTenantsResponse(PageResponse):
    items: Items[PlatformTenantResponse]  # newest first


class OwnerInvitationResponse(ResponseSchema):
    email: str
    url: str  # the link of the invitation; returned only once
    expires_at: datetime
    is_mailed: bool  # false: not sent yet, or the mail server did not accept the e-mail


class CreatedTenantResponse(ResponseSchema):
    tenant: PlatformTenantResponse
    owner_invitation: OwnerInvitationResponse


class DirectoryQuery(PageQuery):
    search: Annotated[str, Field(max_length=63)] = ""  # the beginning of the slug


@router.get(
    "",
    response=PlatformTenantsResponse,
    summary="List tenants, newest first.",
    openapi_extra=_FOR_OPERATORS,
)
def list_all(request: OperatorRequest, page: Query[DirectoryQuery]) -> Page[TenantDirectoryRow]:
    request.auth.require(OperatorScope.READ_TENANTS)
    return list_directory(search=page.search, limit=page.limit, cursor=page.cursor)


@router.post(
    "",
    response={201: CreatedTenantResponse},
    summary="Create a tenant with its encryption key and plan, and invite its first owner.",
    openapi_extra=_SAFE_TO_REPEAT,
)
def create(request: OperatorRequest, body: CreateTenant) -> Status[dict[str, Any]]:
    request.auth.require(OperatorScope.WRITE_TENANTS)
    onboarded = onboard_in_pools(
        new=NewTenant(**body.dict(exclude={"pools"})),
        pools=body.pools,
        # A function, because the tenant has no ID yet.
        actor_for=lambda tenant_id: operator_as_actor(request, tenant_id),
        now=timezone.now(),
    )
    row = find_by_slug(onboarded.slug)
    return Status(201, {"tenant": row, "owner_invitation": onboarded.owner_invitation})


@router.get(
    "/{slug}",
    response=PlatformTenantResponse,
    summary="Show a tenant.",
    openapi_extra=_FOR_OPERATORS,
)
def show(request: OperatorRequest, slug: str) -> TenantDirectoryRow:
    request.auth.require(OperatorScope.READ_TENANTS)
    return find_by_slug(slug)


@router.patch(
    "/{slug}",
    response=PlatformTenantResponse,
    summary="Rename, suspend, resume or close a tenant, and change its trial.",
    openapi_extra=_FOR_OPERATORS,
)
def change(request: OperatorRequest, slug: str, body: ChangeTenant) -> TenantDirectoryRow:
    request.auth.require(OperatorScope.WRITE_TENANTS)
    update_tenant(
        actor=operator_as_actor(request, find_by_slug(slug).tenant_id),
        change=TenantChange(
            name=body.name,
            status=None if body.status is None else TenantStatus(body.status),
            grace_days=body.grace_days,
            sets_trial="trial_ends_on" in body.model_fields_set,  # false: left out, so unchanged
            trial_ends_on=body.trial_ends_on,
        ),
        reason=body.reason,
        now=timezone.now(),
    )
    return find_by_slug(slug)


@router.get(
    "/{slug}/closing",
    response=TenantClosureResponse,
    summary="Show the progress of the closing of a tenant, and its deletion certificate.",
    openapi_extra=_FOR_OPERATORS,
)
def show_closing(request: OperatorRequest, slug: str) -> TenantClosure:
    request.auth.require(OperatorScope.READ_TENANTS)
    return find_closure(tenant_id=find_by_slug(slug).tenant_id)


@router.post(
    "/{slug}/owners",
    response={204: None},
    summary="Make a member an owner, for example if the only owner cannot be reached.",
    openapi_extra=_SAFE_TO_REPEAT,
)
def appoint(request: OperatorRequest, slug: str, body: AppointOwner) -> Status[None]:
    request.auth.require(OperatorScope.WRITE_TENANTS)
    actor = operator_as_actor(request, find_by_slug(slug).tenant_id)
    appoint_owner(actor=actor, email=body.email, reason=body.reason, now=timezone.now())
    return Status(204, None)


@router.post(
    "/{slug}/owner-invitation",
    response={201: OwnerInvitationResponse},
    summary="Invite an owner. If the tenant has none, earlier invitations of owners are revoked.",
    openapi_extra=_SAFE_TO_REPEAT,
)
def invite(request: OperatorRequest, slug: str, body: InviteOwner) -> Status[OwnerInvitation]:
    request.auth.require(OperatorScope.WRITE_TENANTS)
    actor = operator_as_actor(request, find_by_slug(slug).tenant_id)
    return Status(201, invite_owner(actor=actor, email=body.owner_email, now=timezone.now()))


def operator_as_actor(request: OperatorRequest, tenant_id: TenantId) -> Actor:
    """Return the operator key of the request as the actor of operations on a tenant."""
    return build_operator_key_actor(
        request.auth,
        tenant_id=tenant_id,
        address=client_address(request),
        request_id=str(uuid4()),  # the same in all audit entries of the request
    )
