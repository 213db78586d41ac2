"""Budgets over REST, with optimistic locking.

A request that changes or deletes a budget names the `version` that the caller has read. If the
budget has changed since then, the response is a conflict.
"""

import datetime
import uuid
from typing import Annotated

from django.utils import timezone
from ninja import Query, Router, Status
from pydantic import Field

from caret.contracts.pricing import BudgetScope
from console.api.authentication import AuthenticatedRequest, actor_of, document_permissions
from console.api.base_schema import RequestSchema, ResponseSchema
from console.api.pagination import Items, PageQuery, PageResponse
from tenants.base.errors import InvalidValue
from tenants.base.money import Currency
from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.billing.budgets.operations import (
    BudgetTarget,
    BudgetTerms,
    change_budget,
    create_budget,
    delete_budget,
)
from tenants.billing.budgets.queries import (
    BudgetView,
    find_budget,
    find_webhook_secret,
    read_page_of_budgets,
)

router = Router(tags=["budgets"])
_Version = Annotated[int, Field(ge=1, le=2**31 - 1)]  # fits Postgres' integers
# In micros: millionths of the unit of the currency.
_LimitMicros = Annotated[int, Field(ge=1, le=10**15)]
_WebhookUrl = Annotated[str, Field(max_length=500)]


class AlertDeliveryResponse(ResponseSchema):
    channel: str  # mail or webhook
    address: str  # e-mail address, or URL of the webhook
    num_attempts: int
    delivered_at: datetime.datetime | None  # null: not delivered
    next_attempt_at: datetime.datetime | None  # null: no further attempt
    last_error: str  # "": none


class AlertResponse(ResponseSchema):
    percent: int  # the threshold: this share of the limit was reached
    spent_micros: int  # when the alert was created
    limit_micros: int  # of the month, when the alert was created
    created_at: datetime.datetime
    deliveries: list[AlertDeliveryResponse]


class BudgetResponse(ResponseSchema):
    id: uuid.UUID
    scope: BudgetScope
    holder_id: uuid.UUID | None  # ID of the team or user; null: the whole tenant
    holder_name: str | None  # null: the whole tenant, or the holder was deleted
    limit_micros: int  # for a month; for each seat, if is_per_seat
    is_per_seat: bool
    month_limit_micros: int  # limit_micros, multiplied by the current seats if is_per_seat
    currency: Currency
    is_hard: bool  # true: a used-up budget stops completions; false: it only sends alerts
    webhook_url: str  # "": alerts by mail only
    version: int
    created_at: datetime.datetime
    month: datetime.date  # the current UTC month, given by its first day
    spent_micros: int  # in this month, as far as usage is priced
    alerts: list[AlertResponse]  # of this month, lowest threshold first


class BudgetPage(PageResponse):
    items: Items[BudgetResponse]  # newest first


class CreateBudget(
    RequestSchema, json_schema_extra={"example": {"scope": "tenant", "limit_micros": 500_000_000}}
):
    scope: BudgetScope
    team_id: uuid.UUID | None = None  # required for the scope `team` only
    user_id: uuid.UUID | None = None  # required for the scope `user` only
    limit_micros: _LimitMicros  # for a month
    is_per_seat: bool = False  # true: the limit applies to each seat
    is_hard: bool = True  # false: the budget only sends alerts
    webhook_url: _WebhookUrl = ""  # "": alerts by mail only


class ChangeBudget(
    RequestSchema, json_schema_extra={"example": {"limit_micros": 750_000_000, "version": 1}}
):
    limit_micros: _LimitMicros
    is_per_seat: bool = False
    is_hard: bool = True
    webhook_url: _WebhookUrl = ""
    version: _Version  # the version to replace


class VersionQuery(RequestSchema):
    version: _Version


class WebhookSecret(ResponseSchema):
    secret: str  # in the format of the Standard Webhooks specification


@router.get(
    "",
    response=BudgetPage,
    summary="List budgets with their spending and alerts.",
    openapi_extra=document_permissions(Permission.READ_BILLING),
)
def list_all(request: AuthenticatedRequest, page: Query[PageQuery]) -> Page[BudgetView]:
    return read_page_of_budgets(
        actor=actor_of(request), limit=page.limit, cursor=page.cursor, now=timezone.now()
    )


@router.post(
    "",
    response={201: BudgetResponse},
    summary="Create a budget of the tenant, a team or a user; hard budgets apply at once.",
    openapi_extra=document_permissions(Permission.WRITE_BUDGETS),
)
def create(request: AuthenticatedRequest, body: CreateBudget) -> Status[object]:
    budget = create_budget(
        actor=actor_of(request),
        holder=_to_holder(body),
        terms=_to_terms(body),
        now=timezone.now(),
    )
    return Status(201, budget)


@router.get(
    "/{budget_id}",
    response=BudgetResponse,
    summary="Get a budget.",
    openapi_extra=document_permissions(Permission.READ_BILLING),
)
def find(request: AuthenticatedRequest, budget_id: uuid.UUID) -> BudgetView:
    return find_budget(actor=actor_of(request), budget_id=budget_id, now=timezone.now())


@router.put(
    "/{budget_id}",
    response=BudgetResponse,
    summary="Change a budget.",
    openapi_extra=document_permissions(Permission.WRITE_BUDGETS),
)
def change(request: AuthenticatedRequest, budget_id: uuid.UUID, body: ChangeBudget) -> BudgetView:
    return change_budget(
        actor=actor_of(request),
        budget_id=budget_id,
        terms=_to_terms(body),
        version=body.version,
        now=timezone.now(),
    )


@router.delete(
    "/{budget_id}",
    response={204: None},
    summary="Delete a budget.",
    openapi_extra=document_permissions(Permission.WRITE_BUDGETS),
)
def delete(
    request: AuthenticatedRequest, budget_id: uuid.UUID, query: Query[VersionQuery]
) -> Status[None]:
    delete_budget(
        actor=actor_of(request), budget_id=budget_id, version=query.version, now=timezone.now()
    )
    return Status(204, None)


@router.get(
    "/{budget_id}/webhook-secret",
    response=WebhookSecret,
    summary="Get the secret that verifies messages to a budget's webhook.",
    openapi_extra=document_permissions(Permission.WRITE_BUDGETS),
)
def webhook_secret(request: AuthenticatedRequest, budget_id: uuid.UUID) -> dict[str, str]:
    secret = find_webhook_secret(actor=actor_of(request), budget_id=budget_id, now=timezone.now())
    return {"secret": secret}


def _to_terms(body: CreateBudget | ChangeBudget) -> BudgetTerms:
    return BudgetTerms(body.limit_micros, body.is_hard, body.webhook_url, body.is_per_seat)


def _to_holder(body: CreateBudget) -> BudgetTarget:
    """Return the tenant, team or user of the budget. The target has no ID for the whole tenant.

    Raises InvalidValue if an ID is missing, or does not fit the scope.
    """
    ids = {BudgetScope.TEAM: body.team_id, BudgetScope.USER: body.user_id}
    for scope, field in ((BudgetScope.TEAM, "team_id"), (BudgetScope.USER, "user_id")):
        has_id, needs_id = ids[scope] is not None, body.scope is scope
        if has_id != needs_id:
            raise InvalidValue(
                field, f"This is required if the scope is {scope.value}, and not allowed otherwise."
            )
    return BudgetTarget(body.scope, ids.get(body.scope))
