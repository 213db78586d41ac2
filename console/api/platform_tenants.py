"""Tenants over REST for the operators' provisioning scripts, with operator keys.

Tenants' keys and sessions are refused. Responses to an invitation of an owner contain its link, so
that the operator can hand it over if the e-mail does not arrive.
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
        """Return the key. Raises Unauthenticated, ProblemRaised."""
        key = authenticate_operator_key(text=token, now=timezone.now())
        note_credential(request)
        count_request(f"operator:{key.caller}")
        return key


class OperatorRequest(HttpRequest):
    """A request that passed OperatorKeyAuth."""

    auth: OperatorKeyView


router = Router(tags=["tenants"], auth=OperatorKeyAuth())
_FOR_OPERATORS: Final[dict[str, Any]] = {"x-permissions": [], "x-open-to": "operators"}
# No Idempotency-Key is needed: a slug can be used only once, a member becomes an owner only once,
# and a second invitation of an owner does no harm.
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
    region: _Text | None = None  # null: the installation's own
    # At most one pool of each tier, for all languages.
    pools: _Pools = Field(default_factory=list)
    trial_ends_on: date | None = None  # last day (UTC) with completions; null: no trial


class ChangeTenant(
    RequestSchema, json_schema_extra={"example": {"status": "suspended", "reason": "Unpaid"}}
):
    name: _Text | None = None  # null: unchanged
    # null: unchanged. "closing" starts the grace period, in which "active" and "suspended" cancel
    # the closing. "closed" ends it now: the data is deleted, which is final.
    status: Literal["active", "suspended", "closing", "closed"] | None = None
    grace_days: int | None = None  # with the status "closing"; null: as the installation sets it
    trial_ends_on: date | None = None  # null: no trial any more; left out: unchanged
    reason: _Text  # for the tenant's audit log


class InviteOwner(
    RequestSchema, json_schema_extra={"example": {"owner_email": "olga@acme.example"}}
):
    owner_email: _Text


class AppointOwner(
    RequestSchema,
    json_schema_extra={"example": {"email": "adam@acme.example", "reason": "Olga has left"}},
):
    email: _Text  # of a member
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
    final_export: FinalExportResponse | None  # null: the tenant is not closing
    is_erasing: bool  # its keys are destroyed, and its data is being deleted
    erased_at: datetime | None  # null: not erased
    certificate: str | None  # the signed deletion certificate, a JSON document; null: not erased


class PlatformTenantsResponse(PageResponse):
    items: Items[PlatformTenantResponse]  # newest first


class OwnerInvitationResponse(ResponseSchema):
    email: str
    url: str  # shown once
    expires_at: datetime
    is_mailed: bool  # false: the mail server did not accept the e-mail


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
            sets_trial="trial_ends_on" in body.model_fields_set,
            trial_ends_on=body.trial_ends_on,
        ),
        reason=body.reason,
        now=timezone.now(),
    )
    return find_by_slug(slug)


@router.get(
    "/{slug}/closing",
    response=TenantClosureResponse,
    summary="Show how far the closing of a tenant has come, and its deletion certificate.",
    openapi_extra=_FOR_OPERATORS,
)
def show_closing(request: OperatorRequest, slug: str) -> TenantClosure:
    request.auth.require(OperatorScope.READ_TENANTS)
    return find_closure(tenant_id=find_by_slug(slug).tenant_id)


@router.post(
    "/{slug}/owners",
    response={204: None},
    summary="Make a member an owner, such as when the only owner cannot be reached.",
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
    summary="Invite an owner. While the tenant has none, this replaces earlier invitations.",
    openapi_extra=_SAFE_TO_REPEAT,
)
def invite(request: OperatorRequest, slug: str, body: InviteOwner) -> Status[OwnerInvitation]:
    request.auth.require(OperatorScope.WRITE_TENANTS)
    actor = operator_as_actor(request, find_by_slug(slug).tenant_id)
    return Status(201, invite_owner(actor=actor, email=body.owner_email, now=timezone.now()))


def operator_as_actor(request: OperatorRequest, tenant_id: TenantId) -> Actor:
    return build_operator_key_actor(
        request.auth,
        tenant_id=tenant_id,
        address=client_address(request),
        request_id=str(uuid4()),
    )
