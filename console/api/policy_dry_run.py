"""Dry runs of policies over REST, explanations of refusals, and counts of past refusals."""

import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from django.utils import timezone
from ninja import Query, Router
from pydantic import Field

from caret.contracts.policy import Feature, Mode
from console.api.authentication import AuthenticatedRequest, actor_of, documents_permissions
from console.api.base_schema import RequestSchema, ResponseSchema
from console.api.openapi import SAFE_TO_REPEAT
from tenants.base.permissions import Permission
from tenants.policy.access_explanation import AccessQuery
from tenants.policy.denials import MAX_DAYS, count_denials
from tenants.policy.document import DEFAULT_POLICY, serialize_policy
from tenants.policy.dry_run import (
    DryRun,
    explain_access_for,
    preview_override_change,
    preview_policy,
)
from tenants.policy.overrides.queries import OverrideSubject, SubjectKind

router = Router(tags=["policy"])

_MAX_SHOWN: Final = 200  # number of members
_MAX_NAME_CHARS: Final = 512  # as in gateways
_PREVIEW_EXAMPLE: Final = {"policy": serialize_policy(DEFAULT_POLICY)}
_OVERRIDE_EXAMPLE: Final = {"override": {"features": ["inline"]}}


class GlobResponse(ResponseSchema):
    repository: str  # "*": all
    glob: str


class DryRunResponse(ResponseSchema):
    num_members: int
    num_affected: int
    affected: list[str]  # e-mail addresses, at most 200; empty if the caller may not read members
    fields: dict[str, int]  # field of the policy -> number of affected members
    features_lost: dict[Feature, int]  # feature -> number of members who lose it
    features_gained: dict[Feature, int]
    globs_added: list[GlobResponse]
    globs_removed: list[GlobResponse]
    keys_beyond_lifetime: int  # active keys that last longer than the new maximum
    keys_to_be_revoked: int  # idle keys, which are revoked within an hour


class PreviewPolicy(RequestSchema, json_schema_extra={"example": _PREVIEW_EXAMPLE}):
    policy: dict[str, Any]  # the proposed policy


class PreviewOverride(RequestSchema, json_schema_extra={"example": _OVERRIDE_EXAMPLE}):
    override: dict[str, Any]  # the proposed policy override


class AccessQueryParams(RequestSchema):
    """The request to explain."""

    user_email: Annotated[str, Field(max_length=254)] | None = None  # null: the caller
    mode: Mode = Mode.INLINE
    repository: Annotated[str, Field(max_length=_MAX_NAME_CHARS)] = ""
    path: Annotated[str, Field(max_length=_MAX_NAME_CHARS)] = ""


class BlockingRuleResponse(ResponseSchema):
    policy_level: str  # "tenant", "team:<name>", "user:<e-mail address>"
    field: str  # of the policy or the policy override
    code: str  # error code of gateways
    detail: str


class AccessExplanationResponse(ResponseSchema):
    is_allowed: bool
    rules: list[BlockingRuleResponse]  # rules that forbid it, the tenant's first
    may_retrieve: bool  # whether indexed code may be in the prompt
    policy: dict[str, Any]  # the user's effective policy


class DenialResponse(ResponseSchema):
    reason: str
    mode: str
    user_id: UUID | None  # null: service keys
    num_denials: int
    last_at: datetime.datetime


class DenialListResponse(ResponseSchema):
    denials: list[DenialResponse]  # the most frequent first
    generated_at: datetime.datetime


class DenialRange(RequestSchema):
    days: Annotated[int, Field(ge=1, le=MAX_DAYS)] = 30


@router.post(
    "/preview",
    response=DryRunResponse,
    summary="Preview the effect of a new policy and the members affected; saves nothing.",
    openapi_extra=documents_permissions(Permission.WRITE_POLICY) | SAFE_TO_REPEAT,
)
def preview(request: AuthenticatedRequest, body: PreviewPolicy) -> DryRunResponse:
    dry_run = preview_policy(actor=actor_of(request), document=body.policy, now=timezone.now())
    return _to_response(dry_run)


@router.post(
    "/overrides/{kind}/{subject_id}/preview",
    response=DryRunResponse,
    summary="Preview the effect of a policy override of a team or user; saves nothing.",
    openapi_extra=documents_permissions(Permission.WRITE_POLICY) | SAFE_TO_REPEAT,
)
def preview_override(
    request: AuthenticatedRequest, kind: SubjectKind, subject_id: UUID, body: PreviewOverride
) -> DryRunResponse:
    subject = OverrideSubject(kind, subject_id)
    return _to_response(
        preview_override_change(actor=actor_of(request), subject=subject, document=body.override)
    )


@router.get(
    "/explain",
    response=AccessExplanationResponse,
    summary="Explain why a request is refused: the rules of the policy that forbid it.",
    openapi_extra=documents_permissions(Permission.READ_POLICY),
)
def explain(
    request: AuthenticatedRequest, query: Query[AccessQueryParams]
) -> AccessExplanationResponse:
    explanation = explain_access_for(
        actor=actor_of(request),
        email=query.user_email,
        access_query=AccessQuery(query.mode, query.repository, query.path),
    )
    return AccessExplanationResponse(
        is_allowed=not explanation.rules,
        rules=[BlockingRuleResponse.from_orm(rule) for rule in explanation.rules],
        may_retrieve=explanation.may_retrieve,
        policy=serialize_policy(explanation.policy),
    )


@router.get(
    "/denials",
    response=DenialListResponse,
    summary="Count refusals by policies, grouped by reason; contains no paths.",
    openapi_extra=documents_permissions(Permission.READ_USAGE, Permission.READ_OWN_USAGE),
)
def denials(request: AuthenticatedRequest, span: Query[DenialRange]) -> dict[str, object]:
    now = timezone.now()
    reports = count_denials(actor=actor_of(request), num_days=span.days, now=now)
    return {"denials": reports, "generated_at": now}


def _to_response(dry_run: DryRun) -> DryRunResponse:
    difference = dry_run.difference
    return DryRunResponse(
        num_members=difference.num_members,
        num_affected=len(difference.affected),
        affected=difference.affected[:_MAX_SHOWN] if dry_run.has_member_details else [],
        fields=difference.fields,
        features_lost=difference.features_lost,
        features_gained=difference.features_gained,
        globs_added=[
            GlobResponse(repository=name, glob=glob) for name, glob in difference.globs_added
        ],
        globs_removed=[
            GlobResponse(repository=name, glob=glob) for name, glob in difference.globs_removed
        ],
        keys_beyond_lifetime=dry_run.keys_beyond_lifetime,
        keys_to_be_revoked=dry_run.keys_to_be_revoked,
    )
