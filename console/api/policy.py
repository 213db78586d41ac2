"""The policy over REST."""

from datetime import datetime
from typing import Annotated, Any, Final

from django.http import HttpResponse
from django.utils import timezone
from ninja import Query, Router
from pydantic import Field

from caret.contracts.policy import Tier
from console.api.authentication import AuthenticatedRequest, actor_of, document_permissions
from console.api.base_schema import RequestSchema, ResponseSchema
from console.api.optimistic_locking import ACCEPTS_IF_MATCH, check_expected_version, make_etag
from console.api.pagination import Items, PageQuery, PageResponse
from tenants.base.billing_periods import utc_day
from tenants.base.permissions import Permission
from tenants.policy.availability.model_offers import ModelOffer, get_offers
from tenants.policy.document import DEFAULT_POLICY, serialize_policy
from tenants.policy.operations import set_policy
from tenants.policy.queries import PolicyVersionView, get_policy, read_page_of_versions

router = Router(tags=["policy"])

_EXAMPLE: Final = {
    "policy": serialize_policy(DEFAULT_POLICY),
    "reason": "Exclude key files.",
    "expected_version": 1,
}


class PolicyResponse(ResponseSchema):
    version: int  # from 1
    policy: dict[str, Any]  # with the fields of caret.contracts.policy.TenantPolicy
    author_email: str | None  # null: the platform, a key, or an erased user
    author_key: str  # lookup ID; "": no key
    reason: str
    created_at: datetime


class PolicyPage(PageResponse):
    items: Items[PolicyResponse]  # newest first


class ModelResponse(ResponseSchema):
    name: str  # as requests and policies name it
    title: str  # the name that people see
    tier: Tier


class ModelsResponse(ResponseSchema):
    models: list[ModelResponse]  # by tier; the first model of a tier is the tier's default


class SetPolicy(RequestSchema, json_schema_extra={"example": _EXAMPLE}):
    policy: dict[str, Any]  # as in `PolicyResponse.policy`
    reason: str
    # The version to replace; null: any version. If another version is in force, the response is a
    # conflict.
    expected_version: Annotated[int, Field(ge=1)] | None = None


@router.get(
    "",
    response=PolicyResponse,
    summary="Get the policy in force.",
    openapi_extra=document_permissions(Permission.READ_POLICY),
)
def get(request: AuthenticatedRequest, response: HttpResponse) -> PolicyResponse:
    policy = get_policy(actor=actor_of(request))
    response["ETag"] = make_etag(policy.version)
    return _to_response(policy)


@router.get(
    "/versions",
    response=PolicyPage,
    summary="List the policy's versions with their authors and reasons.",
    openapi_extra=document_permissions(Permission.READ_POLICY),
)
def versions(request: AuthenticatedRequest, page: Query[PageQuery]) -> dict[str, object]:
    policies = read_page_of_versions(actor=actor_of(request), limit=page.limit, cursor=page.cursor)
    return {
        "items": [_to_response(row) for row in policies.rows],
        "next_cursor": policies.next_cursor,
    }


@router.get(
    "/models",
    response=ModelsResponse,
    summary="List the models that your tenant can choose from.",
    openapi_extra=document_permissions(Permission.READ_POLICY),
)
def models(request: AuthenticatedRequest) -> dict[str, list[ModelOffer]]:
    return {"models": get_offers(actor=actor_of(request), on=utc_day(timezone.now()))}


@router.put(
    "",
    response=PolicyResponse,
    summary="Replace the policy with a new version; needs a reason.",
    openapi_extra=document_permissions(Permission.WRITE_POLICY) | ACCEPTS_IF_MATCH,
)
def put(request: AuthenticatedRequest, body: SetPolicy, response: HttpResponse) -> PolicyResponse:
    with check_expected_version(request, body.expected_version) as expected_version:
        policy = set_policy(
            actor=actor_of(request),
            document=body.policy,
            reason=body.reason,
            expected_version=expected_version,
            now=timezone.now(),
        )
    response["ETag"] = make_etag(policy.version)
    return _to_response(policy)


def _to_response(policy: PolicyVersionView) -> PolicyResponse:
    return PolicyResponse(
        version=policy.version,
        policy=serialize_policy(policy.policy),
        author_email=policy.author_email,
        author_key=policy.author_key,
        reason=policy.reason,
        created_at=policy.created_at,
    )
