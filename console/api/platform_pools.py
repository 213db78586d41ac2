"""Assignments of pools to tenants, and the model catalogue, over REST with operator keys."""

from datetime import datetime
from typing import Annotated, Any, Final

from django.utils import timezone
from ninja import Query, Router
from pydantic import Field

from caret.contracts.policy import ANY_LANGUAGE, Tier
from console.api.base_schema import RequestSchema, ResponseSchema
from console.api.platform_tenants import OperatorKeyAuth, OperatorRequest, operator_as_actor
from tenants.base.operator_roles import OperatorScope
from tenants.fleet.operators.queries import find_by_slug
from tenants.fleet.pools.assignments import (
    AssignmentView,
    KnownPool,
    NewAssignment,
    PoolSharing,
    assign_pool,
    list_assignments,
    read_known_pools,
    unassign_pool,
)
from tenants.fleet.pools.model_catalog import (
    CatalogEntry,
    NewModel,
    list_catalog,
    publish_model,
    withdraw_model,
)

pools = Router(tags=["pools"], auth=OperatorKeyAuth())
tenant_pools = Router(tags=["pools"], auth=OperatorKeyAuth())
models = Router(tags=["models"], auth=OperatorKeyAuth())
# For `openapi_extra`. Operators have scopes instead of a role's permissions.
_FOR_OPERATORS: Final[dict[str, Any]] = {"x-permissions": [], "x-open-to": "operators"}
_Text = Annotated[str, Field(max_length=1_000)]


class PoolResponse(ResponseSchema):
    name: str
    tier: Tier
    model: str
    sharing: PoolSharing


class PoolsResponse(ResponseSchema):
    pools: list[PoolResponse]


class AssignPool(
    RequestSchema,
    json_schema_extra={
        "example": {"pool": "acme-fast", "is_dedicated": True, "reason": "Contract 2041"}
    },
):
    pool: _Text  # will serve the tenant's requests of the pool's tier
    # A language identifier, such as python. ANY_LANGUAGE: all languages without an assignment of
    # their own.
    language: Annotated[str, Field(max_length=40)] = ANY_LANGUAGE
    is_dedicated: bool = False  # true: no other tenant may use the pool
    reason: _Text  # for the tenant's audit log


class UnassignQuery(RequestSchema):
    tier: Tier
    language: Annotated[str, Field(max_length=40)] = ANY_LANGUAGE
    reason: _Text


class AssignmentResponse(ResponseSchema):
    tier: Tier
    language: str  # "*": all languages without an assignment of their own
    pool: str
    is_dedicated: bool
    created_at: datetime


class AssignmentsResponse(ResponseSchema):
    assignments: list[AssignmentResponse]  # sorted by tier and language


class PublishModel(
    RequestSchema,
    json_schema_extra={
        "example": {"title": "Qwen 2.5 Coder 7B", "pools": ["qwen-fast"], "plans": ["team"]}
    },
):
    title: _Text  # the name of the model that people see
    pools: Annotated[list[_Text], Field(max_length=100)]  # must all have the same tier and model
    # Slugs of the plans that include the model. Empty: all plans.
    plans: Annotated[list[_Text], Field(default_factory=list, max_length=100)]
    # In the list of its tier. Null: the last position for a new model, otherwise unchanged.
    position: int | None = None


class ModelQuery(RequestSchema):
    name: _Text
    tier: Tier


class CatalogEntryResponse(ResponseSchema):
    name: str  # as requests and policies name it
    tier: Tier
    title: str
    pools: list[str]
    plans: list[str]  # slugs of the plans that include the model; empty: all plans
    position: int  # in the list of its tier
    is_published: bool  # false: withdrawn, so no tenant can use it
    changed_at: datetime


class CatalogResponse(ResponseSchema):
    models: list[CatalogEntryResponse]  # sorted by tier and position


@pools.get(
    "",
    response=PoolsResponse,
    summary="List the pools that the gateways report.",
    openapi_extra=_FOR_OPERATORS,
)
def list_pools(request: OperatorRequest) -> dict[str, list[KnownPool]]:
    request.auth.require(OperatorScope.READ_TENANTS)
    return {"pools": sorted(read_known_pools().values(), key=lambda pool: pool.name)}


@tenant_pools.get(
    "/{slug}/pools",
    response=AssignmentsResponse,
    summary="List the pools that are assigned to a tenant.",
    openapi_extra=_FOR_OPERATORS,
)
def list_assigned(request: OperatorRequest, slug: str) -> dict[str, list[AssignmentView]]:
    request.auth.require(OperatorScope.READ_TENANTS)
    return {"assignments": list_assignments(tenant_id=find_by_slug(slug).tenant_id)}


@tenant_pools.put(
    "/{slug}/pools",
    response=AssignmentResponse,
    summary="Assign a pool to a tenant. Gateways follow within a second.",
    openapi_extra=_FOR_OPERATORS,
)
def assign(request: OperatorRequest, slug: str, body: AssignPool) -> AssignmentView:
    request.auth.require(OperatorScope.WRITE_TENANTS)
    return assign_pool(
        actor=operator_as_actor(request, find_by_slug(slug).tenant_id),
        assignment=NewAssignment(body.pool, body.language, body.is_dedicated),
        known_pools=read_known_pools(),
        reason=body.reason,
        now=timezone.now(),
    )


@tenant_pools.delete(
    "/{slug}/pools",
    response={204: None},
    summary="Remove the assignment of a pool to a tenant; other pools then serve its requests.",
    openapi_extra=_FOR_OPERATORS,
)
def unassign(request: OperatorRequest, slug: str, query: Query[UnassignQuery]) -> None:
    request.auth.require(OperatorScope.WRITE_TENANTS)
    unassign_pool(
        actor=operator_as_actor(request, find_by_slug(slug).tenant_id),
        tier=query.tier,
        language=query.language,
        reason=query.reason,
        now=timezone.now(),
    )


@models.get(
    "",
    response=CatalogResponse,
    summary="List the model catalogue, including withdrawn models.",
    openapi_extra=_FOR_OPERATORS,
)
def list_models(request: OperatorRequest) -> dict[str, list[CatalogEntry]]:
    request.auth.require(OperatorScope.READ_TENANTS)
    return {"models": list_catalog()}


@models.put(
    "",
    response=CatalogEntryResponse,
    summary="Publish the model that the given pools serve, or change its entry in the catalogue.",
    openapi_extra=_FOR_OPERATORS,
)
def publish(request: OperatorRequest, body: PublishModel) -> CatalogEntry:
    request.auth.require(OperatorScope.WRITE_TENANTS)
    return publish_model(
        operator=request.auth.caller,
        model=NewModel(body.title, tuple(body.pools), tuple(body.plans), body.position),
        known_pools=read_known_pools(),
        now=timezone.now(),
    )


@models.delete(
    "",
    response={204: None},
    summary="Stop offering a model. Policies that name it keep the name.",
    openapi_extra=_FOR_OPERATORS,
)
def withdraw(request: OperatorRequest, query: Query[ModelQuery]) -> None:
    request.auth.require(OperatorScope.WRITE_TENANTS)
    withdraw_model(
        operator=request.auth.caller, name=query.name, tier=query.tier, now=timezone.now()
    )
