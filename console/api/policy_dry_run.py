"""Dry runs of policies over REST, explanations of refusals, and counts of past refusals."""

import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from django.utils import timezone
from ninja import Query, Router
from pydantic import Field

from caret.contracts.policy import Feature, Mode
from console.api.authentication import AuthenticatedRequest, actor_of, document_permissions
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

_MAX_AFFECTED_SHOWN: Final = 200  # number of e-mail addresses in a response
_MAX_NAME_CHARS: Final = 512  # of paths and repositories, as in inference.gateway.receive
_PREVIEW_EXAMPLE: Final = {"policy": serialize_policy(DEFAULT_POLICY)}
_OVERRIDE_EXAMPLE: Final = {"override": {"features": ["inline"]}}


class GlobResponse(ResponseSchema):
    repository: str  # "*": all repositories
    glob: str  # of files that must not reach a prompt


class DryRunResponse(ResponseSchema):
    num_members: int  # of the whole tenant
    num_affected: int  # members whose effective policy would change
    # Their e-mail addresses, at most 200. Empty if the caller may not read members.
    affected: list[str]
    fields: dict[str, int]  # field of the policy -> number of affected members
    features_lost: dict[Feature, int]  # feature -> number of members who lose it
    features_gained: dict[Feature, int]
    globs_added: list[GlobResponse]
    globs_removed: list[GlobResponse]
    # Number of active keys whose lifetime exceeds the new maximum. They stay valid.
    keys_beyond_lifetime: int
    # Number of idle keys. They are revoked within an hour after the policy is set.
    keys_to_be_revoked: int


class PreviewPolicy(RequestSchema, json_schema_extra={"example": _PREVIEW_EXAMPLE}):
    policy: dict[str, Any]  # the proposed policy


class PreviewOverride(RequestSchema, json_schema_extra={"example": _OVERRIDE_EXAMPLE}):
    override: dict[str, Any]  # the proposed policy override


class AccessQueryParams(RequestSchema):
    """The completion request to explain."""

    user_email: Annotated[str, Field(max_length=254)] | None = None  # null: the caller
    mode: Mode = Mode.INLINE
    repository: Annotated[str, Field(max_length=_MAX_NAME_CHARS)] = ""  # "": not named
    path: Annotated[str, Field(max_length=_MAX_NAME_CHARS)] = ""  # "": not named


class BlockingRuleResponse(ResponseSchema):
    policy_level: str  # "tenant", "team:<name>", "user:<e-mail address>"
    field: str  # of the policy or the policy override
    code: str  # the error code with which gateways reject the request
    detail: str  # a text for people


class AccessExplanationResponse(ResponseSchema):
    is_allowed: bool  # no rule forbids the request; models and regions are not checked
    rules: list[BlockingRuleResponse]  # rules that forbid the request, the tenant's first
    may_retrieve: bool  # whether indexed code of the repository may be in the prompt
    policy: dict[str, Any]  # the user's effective policy


class DenialResponse(ResponseSchema):
    reason: str  # error code or filter reason of the completion
    mode: str
    user_id: UUID | None  # null: service keys
    num_denials: int
    last_at: datetime.datetime  # time of the last one


class DenialListResponse(ResponseSchema):
    denials: list[DenialResponse]  # the most frequent first
    generated_at: datetime.datetime


class DenialRange(RequestSchema):
    days: Annotated[int, Field(ge=1, le=MAX_DAYS)] = 30  # until now, of 24 hours each


@router.post(
    "/preview",
    response=DryRunResponse,
    summary="Preview the effect of a new policy and the members affected; saves nothing.",
    openapi_extra=document_permissions(Permission.WRITE_POLICY) | SAFE_TO_REPEAT,
)
def preview(request: AuthenticatedRequest, body: PreviewPolicy) -> DryRunResponse:
    dry_run = preview_policy(actor=actor_of(request), document=body.policy, now=timezone.now())
    return _to_response(dry_run)


@router.post(
    "/overrides/{kind}/{subject_id}/preview",
    response=DryRunResponse,
    summary="Preview the effect of a policy override of a team or user; saves nothing.",
    openapi_extra=document_permissions(Permission.WRITE_POLICY) | SAFE_TO_REPEAT,
)
def preview_override(
    request: AuthenticatedRequest, kind: SubjectKind, subject_id: UUID, body: PreviewOverride
) -> DryRunResponse:
    subject = OverrideSubject(kind, subject_id)
    return _to_response(
        preview_override_change(
            actor=actor_of(request), subject=subject, document=body.override, now=timezone.now()
        )
    )


@router.get(
    "/explain",
    response=AccessExplanationResponse,
    summary="Explain why a completion request is refused: the rules that forbid it.",
    openapi_extra=document_permissions(Permission.READ_POLICY),
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
    summary="Count completions that policies refused or withheld, by reason, mode and user.",
    openapi_extra=document_permissions(Permission.READ_USAGE, Permission.READ_OWN_USAGE),
)
def denials(request: AuthenticatedRequest, period: Query[DenialRange]) -> dict[str, object]:
    now = timezone.now()
    denial_counts = count_denials(actor=actor_of(request), num_days=period.days, now=now)
    return {"denials": denial_counts, "generated_at": now}


def _to_response(dry_run: DryRun) -> DryRunResponse:
    difference = dry_run.difference
    return DryRunResponse(
        num_members=difference.num_members,
        num_affected=len(difference.affected),
        affected=difference.affected[:_MAX_AFFECTED_SHOWN] if dry_run.has_member_details else [],
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
