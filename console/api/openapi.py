"""The API as its OpenAPI document describes it: what all endpoints have in common is said here.

An operation has an id `group.command`, such as `keys.create`; the command line is made of them.
"""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

DESCRIPTION: Final = """\
Everything that an administrator does in the console, for automation.

Lists come in pages: give `next_cursor` back as `cursor`. What is refused is a problem document
(RFC 9457) whose `code` does not change. A POST with an `Idempotency-Key` header is done once, and
answered again for a day to who may do the same; while the first is under way the second is refused
(409, `idempotency_in_progress`). Answers to GET have an `ETag`. 600 requests a minute and caller.
"""


@dataclass(frozen=True, slots=True)
class _ErrorResponse:
    """A kind of problem that many operations answer with."""

    name: str
    when: str
    code: str  # of the example
    detail: str


_REFUSALS: Final = {
    400: _ErrorResponse(
        "BadJson", "The body is not valid JSON.", "invalid_json", "Cannot parse request body"
    ),
    401: _ErrorResponse(
        "NotSignedIn",
        "The request has no API key and no session.",
        "unauthenticated",
        "Sign in, or send an API key.",
    ),
    403: _ErrorResponse(
        "Forbidden",
        "The role or the key's scopes do not allow this, or the CSRF token is missing.",
        "forbidden",
        "The role developer does not allow this (keys.create).",
    ),
    404: _ErrorResponse(
        "NotFound", "The resource does not exist.", "not_found", "This key does not exist."
    ),
    409: _ErrorResponse(
        "Conflict",
        "The resource is not in a state that allows this, or it has changed.",
        "conflict",
        "The current version is 7, not 6. Reload and try again.",
    ),
    412: _ErrorResponse(
        "Outdated",
        "If-Match does not match the current version.",
        "version_conflict",
        "The current version is 7, not 6. Reload and try again.",
    ),
    413: _ErrorResponse(
        "TooLarge", "The body is too large.", "too_large", "The body must not exceed 1 MiB."
    ),
    422: _ErrorResponse(
        "Invalid",
        "A value is invalid; `field` names it.",
        "invalid",
        "Enter a whole number from 1 to 10000.",
    ),
    429: _ErrorResponse(
        "TooManyRequests",
        "Too many requests; retry after the seconds in `Retry-After`.",
        "too_many_requests",
        "You can send at most 600 requests per minute. Try again in 12 s.",
    ),
}
_PROBLEM_SCHEMA: Final[dict[str, Any]] = {
    "title": "Problem",
    "type": "object",
    "required": ["type", "title", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "Does not change."},
        "detail": {"type": "string", "description": "For people."},
        "field": {"type": "string", "description": "Of the request."},
        "version_in_force": {"type": "integer", "description": "Where another one was to go."},
        "version_replaced": {"type": ["integer", "null"], "description": "The one to go."},
    },
}
_IDEMPOTENCY_KEY: Final = {
    "in": "header",
    "name": "Idempotency-Key",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    "description": "The caller's own word for this request, which is then done once.",
    "example": "8c1f6c1e-3b0e-4f6e-9c55-6a2d7a0f3b61",
}


_IF_MATCH: Final = {
    "in": "header",
    "name": "If-Match",
    "required": False,
    "schema": {"type": "string", "maxLength": 32},
    "description": "The ETag of the version that is to be replaced.",
    "example": '"v7"',
}


_DONE_ANEW: Final = "x-done-anew"
# For `openapi_extra`: a POST that changes nothing, answers with a file, or asks somebody outside.
# It takes no Idempotency-Key: done twice is as well.
DONE_ANEW: Final = {_DONE_ANEW: True}


def is_done_anew(operation: Operation) -> bool:
    return _DONE_ANEW in (operation.openapi_extra or {})


class CaretApi(NinjaAPI):
    """django-ninja's, with short operation ids and a whole description."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        group = (operation.tags or ["api"])[0]
        return f"{group}.{operation.view_func.__name__.removesuffix('_all')}"

    def get_openapi_schema(self, **kwargs: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**kwargs)
        components = schema["components"]
        components.setdefault("schemas", {})["Problem"] = _PROBLEM_SCHEMA
        components["responses"] = {
            refusal.name: _response(status, refusal) for status, refusal in _REFUSALS.items()
        }
        for path, operations in schema["paths"].items():
            for method, operation in operations.items():
                _complete(path, method, operation)
        return schema


def _complete(path: str, method: str, operation: dict[str, Any]) -> None:
    """Adds what every operation may answer, and takes."""
    if method == "post" and _DONE_ANEW not in operation:
        operation["parameters"] = [*operation.get("parameters", []), _IDEMPOTENCY_KEY]
    if "x-replaces-version" in operation:
        operation["parameters"] = [*operation.get("parameters", []), _IF_MATCH]
    for status, refusal in _REFUSALS.items():
        if _may_answer(status, path, operation):
            reference = {"$ref": f"#/components/responses/{refusal.name}"}
            operation["responses"].setdefault(status, reference)


def _may_answer(status: int, path: str, operation: dict[str, Any]) -> bool:
    if status in (401, 429):
        return True
    if status == 403:
        return "security" in operation
    if status == 412:
        return "x-replaces-version" in operation
    if status == 404:
        return "{" in path
    if status == 409 and _IDEMPOTENCY_KEY in operation.get("parameters", []):
        return True
    if status == 422:
        return bool(operation.get("parameters")) or "requestBody" in operation
    return "requestBody" in operation


def _response(status: int, refusal: _ErrorResponse) -> dict[str, Any]:
    example = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": refusal.code,
        "detail": refusal.detail,
    }
    content = {"schema": {"$ref": "#/components/schemas/Problem"}, "example": example}
    return {"description": refusal.when, "content": {"application/problem+json": content}}
