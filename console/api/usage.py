"""Usage over REST: requests and tokens by day, and the explanation of one request."""

import datetime
import uuid
from typing import Annotated

from django.utils import timezone
from ninja import Query, Router
from pydantic import Field

from caret.contracts.policy import Mode
from caret.contracts.usage import FinishReason
from caret.foundation.clock import from_unix_ms
from console.api.authentication import AuthenticatedRequest, actor_of, document_permissions
from console.api.base_schema import RequestSchema, ResponseSchema
from tenants.base.permissions import Permission
from tenants.usage.requests.latency_explanation import explain_latency
from tenants.usage.requests.lookup import find_request
from tenants.usage.requests.queries import MAX_DAYS, list_usage_by_day

router = Router(tags=["usage"])


class UsageDayResponse(ResponseSchema):
    day: datetime.date  # UTC
    requests: int
    completed: int  # ended by the model, by the filter at a good point, or at max_tokens
    errors: int  # requests that ended with an error
    prompt_tokens: int
    prompt_tokens_with_cache_info: int  # of requests whose engine reported cached tokens
    cached_tokens: int  # the part of prompt_tokens_with_cache_info that was in the prefix cache
    generated_tokens: int


class UsageResponse(ResponseSchema):
    days: list[UsageDayResponse]  # oldest first; the last day is today
    generated_at: datetime.datetime


class StageTimingResponse(ResponseSchema):
    name: str  # of the stage
    start_ms: float  # after the request was received
    duration_ms: float
    budget_ms: float | None  # null: the stage has no budget
    is_interrupted: bool  # the completion ended in this stage


class ExplainedRequest(ResponseSchema):
    request_id: uuid.UUID
    occurred_at: datetime.datetime
    mode: Mode
    finish_reason: FinishReason
    error_code: str  # "": no error
    pool: str  # "": the request ended before it had a pool
    replica: str  # "": the request ended before it had a replica
    prompt_tokens: int
    cached_tokens: int | None  # null: the engine did not report them
    generated_tokens: int
    # Other requests that the gateway had in flight at the replica. Null: unknown.
    num_in_flight_at_replica: int | None
    # From the reception of the request to the first text. Null: no text was sent.
    first_token_ms: float | None
    total_ms: float  # to the end of the completion
    target_ms: float  # for the first token
    is_slow: bool  # the first text, or the end without text, came after the target
    stages: list[StageTimingResponse]  # in order, up to the last stage that was reached
    findings: list[str]  # English sentences, the most important first


class DayRange(RequestSchema):
    days: Annotated[int, Field(ge=1, le=MAX_DAYS)] = 30  # number of UTC days, including today


@router.get(
    "",
    response=UsageResponse,
    summary="List requests and tokens by day: the tenant's, or only your own.",
    openapi_extra=document_permissions(Permission.READ_USAGE, Permission.READ_OWN_USAGE),
)
def get(request: AuthenticatedRequest, period: Query[DayRange]) -> dict[str, object]:
    now = timezone.now()
    days = list_usage_by_day(actor=actor_of(request), num_days=period.days, now=now)
    return {"days": days, "generated_at": now}


@router.get(
    "/requests/{request_id}",
    response=ExplainedRequest,
    summary="Explain a request: its stages, and why it was slow or failed.",
    openapi_extra=document_permissions(Permission.READ_USAGE, Permission.READ_OWN_USAGE),
)
def get_request(request: AuthenticatedRequest, request_id: uuid.UUID) -> dict[str, object]:
    record = find_request(actor=actor_of(request), request_id=request_id, now=timezone.now())
    explanation = explain_latency(record)
    return {
        # ExplainedRequest ignores fields of the record that it does not have.
        **{name: getattr(record, name) for name in record.__struct_fields__},
        "occurred_at": from_unix_ms(record.occurred_at_ms),
        "target_ms": explanation.target_ms,
        "is_slow": explanation.is_slow,
        "stages": explanation.stages,
        "findings": explanation.findings,
    }
