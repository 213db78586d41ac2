"""The policy over REST."""

from datetime import datetime
from typing import Annotated, Any, Final

from django.http import HttpResponse
from django.utils import timezone
from ninja import Query, Router
from pydantic import Field

from console.api.authentication import ApiRequest, actor_of, open_to
from console.api.base_schema import Answer, Body
from console.api.optimistic_locking import REPLACES, replacing, tag_of
from console.api.pagination import PageAnswer, Paged
from tenants.base.permissions import Permission
from tenants.policy.document import DEFAULT_POLICY, write_policy
from tenants.policy.operations import set_policy
from tenants.policy.queries import PolicyInForce, get_policy, page_of_versions

router = Router(tags=["policy"])

_EXAMPLE: Final = {
    "policy": write_policy(DEFAULT_POLICY),
    "reason": "Nobody sends keys.",
    "replaces": 1,
}


class Policy(Answer):
    version: int
    policy: dict[str, Any]  # caret.contracts.policy.TenantPolicy
    author_email: str | None  # null: the platform itself, or a key
    author_key: str  # lookup id; "": no key
    reason: str
    created_at: datetime


class PolicyPage(PageAnswer):
    rows: list[Policy]  # newest first


class SetPolicy(Body, json_schema_extra={"example": _EXAMPLE}):
    policy: dict[str, Any]  # as `Policy.policy`
    reason: str
    # The version that this one is to replace; another one in force is a conflict. Null: any.
    replaces: Annotated[int, Field(ge=1)] | None = None


@router.get(
    "",
    response=Policy,
    summary="The policy in force.",
    openapi_extra=open_to(Permission.READ_POLICY),
)
def get(request: ApiRequest, response: HttpResponse) -> Policy:
    found = get_policy(actor=actor_of(request))
    response["ETag"] = tag_of(found.version)
    return _policy(found)


@router.get(
    "/versions",
    response=PolicyPage,
    summary="List what was in force, who said so and why.",
    openapi_extra=open_to(Permission.READ_POLICY),
)
def versions(request: ApiRequest, page: Query[Paged]) -> dict[str, object]:
    found = page_of_versions(actor=actor_of(request), limit=page.limit, cursor=page.cursor)
    return {"rows": [_policy(row) for row in found.rows], "next_cursor": found.next_cursor}


@router.put(
    "",
    response=Policy,
    summary="Put a new version of the policy in force, with a reason.",
    openapi_extra=open_to(Permission.WRITE_POLICY) | REPLACES,
)
def put(request: ApiRequest, asked: SetPolicy, response: HttpResponse) -> Policy:
    with replacing(request, asked.replaces) as replaces:
        found = set_policy(
            actor=actor_of(request),
            document=asked.policy,
            reason=asked.reason,
            replaces=replaces,
            now=timezone.now(),
        )
    response["ETag"] = tag_of(found.version)
    return _policy(found)


def _policy(found: PolicyInForce) -> Policy:
    return Policy(
        version=found.version,
        policy=write_policy(found.policy),
        author_email=found.author_email,
        author_key=found.author_key,
        reason=found.reason,
        created_at=found.created_at,
    )
