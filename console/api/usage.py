"""Usage over REST."""

import datetime
from typing import Annotated

from django.utils import timezone
from ninja import Query, Router
from pydantic import Field

from console.api.authentication import ApiRequest, actor_of, open_to
from console.api.schema import Answer, Body
from tenants.members.permissions import Permission
from tenants.usage.queries import MAX_DAYS, usage_by_day

router = Router(tags=["usage"])


class Day(Answer):
    day: datetime.date  # UTC
    requests: int
    completed: int  # ended by the model or at max_tokens
    errors: int
    prompt_tokens: int
    told_prompt_tokens: int  # of requests whose engine told how many of them were cached
    cached_tokens: int  # of those
    generated_tokens: int


class Usage(Answer):
    days: list[Day]  # oldest first, the last one is running
    generated_at: datetime.datetime


class Span(Body):
    days: Annotated[int, Field(ge=1, le=MAX_DAYS)] = 30


@router.get(
    "",
    response=Usage,
    summary="Requests and tokens by day: all of the tenant's, or one's own.",
    openapi_extra=open_to(Permission.READ_USAGE, Permission.READ_OWN_USAGE),
)
def get(request: ApiRequest, span: Query[Span]) -> dict[str, object]:
    now = timezone.now()
    days = usage_by_day(actor=actor_of(request), num_days=span.days, now=now)
    return {"days": days, "generated_at": now}
