"""Errors as problem documents (RFC 9457), each with a stable `code`."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from django.http import HttpResponse, JsonResponse

from tenants.base.errors import (
    Conflict,
    DomainError,
    Forbidden,
    InvalidValue,
    LimitReached,
    NotFound,
    Unauthenticated,
    VersionConflict,
)


@dataclass(frozen=True, slots=True)
class Problem:
    """The fields of a problem document, and the header `Retry-After` of its response."""

    status: int
    code: str  # stable, for programs
    detail: str  # a text for people
    field: str | None = None  # of the request; None: the error concerns no single field
    retry_after_s: int | None = None  # None: the response has no `Retry-After`
    # The version in force, and the version that the request expected. None: no version conflict.
    versions: tuple[int, int | None] | None = None

    @property
    def title(self) -> str:
        return HTTPStatus(self.status).phrase


# For requests that need Redis while it is unreachable.
UNAVAILABLE: Final = Problem(503, "unavailable", "Try again in a minute.", retry_after_s=60)


class ProblemRaised(Exception):
    """An error that the API itself raises. Operations raise DomainErrors instead.

    The response is `problem`.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.code)
        self.problem = problem


# Each DomainError is an instance of exactly one of these classes.
_STATUS_BY_ERROR: Final[dict[type[DomainError], int]] = {
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    InvalidValue: 422,
    Conflict: 409,
    LimitReached: 429,
}


def build_problem(error: DomainError) -> Problem:
    field = error.field if isinstance(error, InvalidValue) else None
    status = next(status for kind, status in _STATUS_BY_ERROR.items() if isinstance(error, kind))
    versions = (
        (error.current_version, error.expected_version)
        if isinstance(error, VersionConflict)
        else None
    )
    retry_after_s = error.retry_after_s if isinstance(error, LimitReached) else None
    return Problem(status, error.code, error.message, field, retry_after_s, versions)


def problem_response(problem: Problem) -> HttpResponse:
    document: dict[str, Any] = {
        "type": "about:blank",
        "title": problem.title,
        "status": problem.status,
        "code": problem.code,
        "detail": problem.detail,
    }
    if problem.field is not None:
        document["field"] = problem.field
    if problem.versions is not None:
        document["version_in_force"], document["version_replaced"] = problem.versions
    response = JsonResponse(
        document, status=problem.status, content_type="application/problem+json"
    )
    if problem.retry_after_s is not None:
        response["Retry-After"] = str(problem.retry_after_s)
    return response
