"""Reports of leaked keys, sent by secret scanners.

The response and its timing are the same for known and unknown keys. Therefore a scanner, or a thief
of its secret, cannot find out which keys exist.
"""

from typing import Annotated, Any, Final

import redis
from django.http import HttpRequest
from ninja import Body as NinjaBody
from ninja import Router, Schema, Status
from pydantic import Field

from console.api.base_schema import RequestSchema, ResponseSchema
from console.api.leak_report_auth import authenticate_github, authenticate_scanner
from console.api.openapi import SAFE_TO_REPEAT
from console.api.problems import UNAVAILABLE, ProblemRaised
from tenants.base.redis_connection import connect_to_redis
from tenants.identity.api_keys.leak_reports import LeakReport, build_leak_reports, enqueue_reports

router = Router(tags=["leak_reports"])

MAX_TEXTS: Final = 100  # of one report
MAX_CHARS: Final = 10_000  # of one text
_FOR_REPORTERS: Final[dict[str, Any]] = {
    "x-permissions": [],  # reporters have no role in a tenant
    "x-open-to": "reporters",
} | SAFE_TO_REPEAT
_EXAMPLE: Final = {
    "texts": ["export CARET_API_KEY=cpk_live_..."],
    "place": "https://git.example.com/shop/blob/main/.env#L3",
}
_GITHUB_EXAMPLE: Final = {
    "token": "cpk_live_...",
    "type": "caret_api_key",
    "url": "https://github.com/acme/shop/blob/main/.env",
    "source": "content",
}


class LeakReportRequest(RequestSchema, json_schema_extra={"example": _EXAMPLE}):
    # Texts to search for keys.
    texts: Annotated[
        list[Annotated[str, Field(max_length=MAX_CHARS)]], Field(min_length=1, max_length=MAX_TEXTS)
    ]
    # The location where the texts were found, such as a URL.
    place: Annotated[str, Field(max_length=2_000)] = ""


class GitHubLeak(Schema, json_schema_extra={"example": _GITHUB_EXAMPLE}):
    """One leak in GitHub's format. Other fields are ignored."""

    token: Annotated[str, Field(max_length=MAX_CHARS)]  # the leaked text
    url: Annotated[str, Field(max_length=2_000)] = ""  # the location of the text


GitHubLeaks = Annotated[list[GitHubLeak], Field(max_length=MAX_TEXTS, examples=[[_GITHUB_EXAMPLE]])]


class LeakReportReceived(ResponseSchema):
    received: bool = True


@router.post(
    "",
    auth=authenticate_scanner,
    response={202: LeakReportReceived},
    summary="Report texts with leaked keys. The keys are revoked and their owners notified.",
    openapi_extra=_FOR_REPORTERS,
)
def report(request: HttpRequest, body: LeakReportRequest) -> Status[LeakReportReceived]:
    _enqueue_reports(build_leak_reports(body.texts, place=body.place))
    return Status(202, LeakReportReceived())


@router.post(
    "/github",
    auth=authenticate_github,
    response={202: LeakReportReceived},
    summary="Report leaked keys in the format of GitHub's secret scanning.",
    openapi_extra=_FOR_REPORTERS,
)
def report_from_github(
    request: HttpRequest, body: NinjaBody[GitHubLeaks]
) -> Status[LeakReportReceived]:
    for leak in body:
        _enqueue_reports(build_leak_reports([leak.token], place=leak.url))
    return Status(202, LeakReportReceived())


def _enqueue_reports(reports: list[LeakReport]) -> None:
    """Queue the reports.

    Raises Conflict if too many reports are waiting, and ProblemRaised if Redis is unreachable.
    """
    try:
        enqueue_reports(connect_to_redis(), reports)
    except redis.RedisError as error:
        raise ProblemRaised(UNAVAILABLE) from error
