"""The policy over REST."""

from datetime import datetime
from typing import Annotated, Any, Final

from django.utils import timezone
from ninja import Router
from pydantic import Field

from console.api.authentication import ApiRequest, actor_of, open_to
from console.api.schema import Answer, Body
from tenants.members.permissions import Permission
from tenants.policies.document import DEFAULT_POLICY, write_policy
from tenants.policies.operations import set_policy
from tenants.policies.queries import PolicyInForce, get_policy

router = Router(tags=["policy"])

_EXAMPLE: Final = {
    "policy": write_policy(DEFAULT_POLICY),
    "reason": "Nobody sends keys.",
    "replaces": 1,
}


class Policy(Answer):
    version: int
    policy: dict[str, Any]  # caret.contracts.policy.TenantPolicy
    author_email: str | None  # null: the platform itself
    reason: str
    created_at: datetime


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
def get(request: ApiRequest) -> Policy:
    return _policy(get_policy(actor=actor_of(request)))


@router.put(
    "",
    response=Policy,
    summary="Put a new version of the policy in force, with a reason.",
    openapi_extra=open_to(Permission.WRITE_POLICY),
)
def put(request: ApiRequest, asked: SetPolicy) -> Policy:
    return _policy(
        set_policy(
            actor=actor_of(request),
            document=asked.policy,
            reason=asked.reason,
            replaces=asked.replaces,
            now=timezone.now(),
        )
    )


def _policy(found: PolicyInForce) -> Policy:
    return Policy(
        version=found.version,
        policy=write_policy(found.policy),
        author_email=found.author_email,
        reason=found.reason,
        created_at=found.created_at,
    )
