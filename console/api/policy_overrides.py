"""Policy overrides of teams and users over REST."""

from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from django.http import HttpResponse
from django.utils import timezone
from ninja import Query, Router
from pydantic import Field

from console.api.authentication import AuthenticatedRequest, actor_of, document_permissions
from console.api.base_schema import RequestSchema, ResponseSchema
from console.api.optimistic_locking import ACCEPTS_IF_MATCH, check_expected_version, make_etag
from console.api.pagination import Items, PageQuery, PageResponse
from tenants.base.permissions import Permission
from tenants.policy.overrides.document import serialize_override
from tenants.policy.overrides.operations import set_override
from tenants.policy.overrides.queries import (
    OverrideInForce,
    OverrideSubject,
    SubjectKind,
    find_override,
    list_overrides,
)

router = Router(tags=["policy_overrides"])

_EXAMPLE: Final = {
    "override": {
        "features": ["inline", "fim", "block", "docstring"],
        "content_exclusion": {"payments": ["src/keys/**"]},
        "has_public_code_filter": True,
    },
    "reason": "Contractors do not chat.",
    "expected_version": 0,
}


class PolicyOverrideResponse(ResponseSchema):
    kind: SubjectKind
    id: UUID  # of the team or the user
    name: str  # of the team, or the user's e-mail address
    version: int  # 0: no override was ever set
    # With the fields of caret.contracts.policy.PolicyOverride. Missing fields restrict nothing.
    override: dict[str, Any]
    author_email: str | None  # null: no user, or an erased one
    author_key: str  # lookup ID; "": no key
    reason: str
    created_at: datetime | None  # null: no override was ever set


class PolicyOverridePage(PageResponse):
    items: Items[PolicyOverrideResponse]  # newest first


class SetPolicyOverride(RequestSchema, json_schema_extra={"example": _EXAMPLE}):
    # As in `PolicyOverrideResponse.override`. An empty object removes the override.
    override: dict[str, Any]
    reason: str
    # The version to replace; 0: no override was ever set; null: any version. If another version is
    # in force, the response is a conflict.
    expected_version: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None


@router.get(
    "",
    response=PolicyOverridePage,
    summary="List policy overrides of teams and users.",
    openapi_extra=document_permissions(Permission.READ_OVERRIDES),
)
def list_all(request: AuthenticatedRequest, page: Query[PageQuery]) -> dict[str, object]:
    overrides = list_overrides(actor=actor_of(request), limit=page.limit, cursor=page.cursor)
    return {
        "items": [_build_response(row) for row in overrides.rows],
        "next_cursor": overrides.next_cursor,
    }


@router.get(
    "/{kind}/{subject_id}",
    response=PolicyOverrideResponse,
    summary="Get the policy override of a team or user.",
    openapi_extra=document_permissions(Permission.READ_OVERRIDES),
)
def get(
    request: AuthenticatedRequest, kind: SubjectKind, subject_id: UUID, response: HttpResponse
) -> PolicyOverrideResponse:
    override = find_override(actor=actor_of(request), subject=OverrideSubject(kind, subject_id))
    response["ETag"] = make_etag(override.version)
    return _build_response(override)


@router.put(
    "/{kind}/{subject_id}",
    response=PolicyOverrideResponse,
    summary="Set the policy override of a team or user; it further restricts the policy.",
    openapi_extra=document_permissions(Permission.WRITE_POLICY) | ACCEPTS_IF_MATCH,
)
def put(
    request: AuthenticatedRequest,
    kind: SubjectKind,
    subject_id: UUID,
    body: SetPolicyOverride,
    response: HttpResponse,
) -> PolicyOverrideResponse:
    with check_expected_version(request, body.expected_version) as expected_version:
        override = set_override(
            actor=actor_of(request),
            subject=OverrideSubject(kind, subject_id),
            document=body.override,
            reason=body.reason,
            expected_version=expected_version,
            now=timezone.now(),
        )
    response["ETag"] = make_etag(override.version)
    return _build_response(override)


def _build_response(override: OverrideInForce) -> PolicyOverrideResponse:
    return PolicyOverrideResponse(
        kind=override.subject.kind,
        id=override.subject.id,
        name=override.name,
        version=override.version,
        override=serialize_override(override.override),
        author_email=override.author_email,
        author_key=override.author_key,
        reason=override.reason,
        created_at=override.created_at,
    )
