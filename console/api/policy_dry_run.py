"""What a policy would change, why something is refused, and what was, over REST."""

import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from django.utils import timezone
from ninja import Query, Router
from pydantic import Field

from caret.contracts.policy import Feature, Mode
from console.api.authentication import ApiRequest, actor_of, open_to
from console.api.base_schema import Answer, Body
from console.api.openapi import DONE_ANEW
from tenants.base.permissions import Permission
from tenants.policy.access_explanation import Question
from tenants.policy.denials import MAX_DAYS, count_denials
from tenants.policy.document import DEFAULT_POLICY, write_policy
from tenants.policy.dry_run import Preview, explain_for, preview_layer, preview_policy
from tenants.policy.overrides.queries import Subject, SubjectKind

router = Router(tags=["policy"])

_MAX_SHOWN: Final = 200  # members
_MAX_NAME_CHARS: Final = 512  # as gateways take it
_PREVIEW_EXAMPLE: Final = {"policy": write_policy(DEFAULT_POLICY)}
_LAYER_EXAMPLE: Final = {"layer": {"features": ["inline"]}}


class Glob(Answer):
    repository: str  # "*": all
    glob: str


class Previewed(Answer):
    num_members: int
    num_affected: int
    affected: list[str]  # e-mail addresses, the first 200; none for who may not see members
    fields: dict[str, int]  # of the policy -> members for whom it changes
    features_lost: dict[Feature, int]  # -> members
    features_gained: dict[Feature, int]
    globs_added: list[Glob]
    globs_removed: list[Glob]
    keys_beyond_lifetime: int  # in force, good for longer than a new text would be
    keys_to_be_revoked: int  # as idle, within the hour


class PreviewPolicy(Body, json_schema_extra={"example": _PREVIEW_EXAMPLE}):
    policy: dict[str, Any]  # as it would be put


class PreviewLayer(Body, json_schema_extra={"example": _LAYER_EXAMPLE}):
    layer: dict[str, Any]  # as it would be put


class Asked(Body):
    """The query of an explanation."""

    user_email: Annotated[str, Field(max_length=254)] | None = None  # null: oneself
    mode: Mode = Mode.INLINE
    repository: Annotated[str, Field(max_length=_MAX_NAME_CHARS)] = ""
    path: Annotated[str, Field(max_length=_MAX_NAME_CHARS)] = ""


class Against(Answer):
    layer: str  # "tenant", "team:<name>", "user:<e-mail address>"
    field: str  # of the policy or the layer
    code: str  # as gateways refuse
    detail: str


class Explained(Answer):
    is_allowed: bool
    rules: list[Against]  # against it, the tenant's first
    may_retrieve: bool  # what was indexed of the repository
    policy: dict[str, Any]  # as it holds for the user


class Denied(Answer):
    reason: str
    mode: str
    user_id: UUID | None  # null: service keys
    num: int
    last_at: datetime.datetime


class DeniedList(Answer):
    denials: list[Denied]  # the most frequent first
    generated_at: datetime.datetime


class Span(Body):
    days: Annotated[int, Field(ge=1, le=MAX_DAYS)] = 30


@router.post(
    "/preview",
    response=Previewed,
    summary="What a new policy would change, and for whom; nothing is saved.",
    openapi_extra=open_to(Permission.WRITE_POLICY) | DONE_ANEW,
)
def preview(request: ApiRequest, asked: PreviewPolicy) -> Previewed:
    found = preview_policy(actor=actor_of(request), document=asked.policy, now=timezone.now())
    return _previewed(found)


@router.post(
    "/layers/{kind}/{subject_id}/preview",
    response=Previewed,
    summary="What saying something of a team or user would change; nothing is saved.",
    openapi_extra=open_to(Permission.WRITE_POLICY) | DONE_ANEW,
)
def preview_of_layer(
    request: ApiRequest, kind: SubjectKind, subject_id: UUID, asked: PreviewLayer
) -> Previewed:
    subject = Subject(kind, subject_id)
    return _previewed(preview_layer(actor=actor_of(request), subject=subject, document=asked.layer))


@router.get(
    "/explain",
    response=Explained,
    summary="Why a request is refused: which rule of which layer is against it.",
    openapi_extra=open_to(Permission.READ_POLICY),
)
def explain(request: ApiRequest, asked: Query[Asked]) -> Explained:
    found = explain_for(
        actor=actor_of(request),
        email=asked.user_email,
        question=Question(asked.mode, asked.repository, asked.path),
    )
    return Explained(
        is_allowed=not found.rules,
        rules=[Against.from_orm(rule) for rule in found.rules],
        may_retrieve=found.may_retrieve,
        policy=write_policy(found.policy),
    )


@router.get(
    "/denials",
    response=DeniedList,
    summary="How often policies have refused or withheld, by reason; no paths.",
    openapi_extra=open_to(Permission.READ_USAGE, Permission.READ_OWN_USAGE),
)
def denials(request: ApiRequest, span: Query[Span]) -> dict[str, object]:
    now = timezone.now()
    found = count_denials(actor=actor_of(request), num_days=span.days, now=now)
    return {"denials": found, "generated_at": now}


def _previewed(found: Preview) -> Previewed:
    difference = found.difference
    return Previewed(
        num_members=difference.num_members,
        num_affected=len(difference.affected),
        affected=difference.affected[:_MAX_SHOWN] if found.shows_members else [],
        fields=difference.fields,
        features_lost=difference.features_lost,
        features_gained=difference.features_gained,
        globs_added=[Glob(repository=name, glob=glob) for name, glob in difference.globs_added],
        globs_removed=[Glob(repository=name, glob=glob) for name, glob in difference.globs_removed],
        keys_beyond_lifetime=found.keys_beyond_lifetime,
        keys_to_be_revoked=found.keys_to_be_revoked,
    )
