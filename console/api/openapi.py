"""The OpenAPI document of the API: its description, and errors and headers that endpoints share.

An operation's ID is `group.command`, such as `keys.create`. The commands of `caret.client.api` are
generated from these IDs.
"""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

DESCRIPTION: Final = """\
Automates most tasks that administrators have in the console.

Lists are paginated: pass `next_cursor` as `cursor`. Errors are problem documents
(RFC 9457) with a stable `code`. If an operation accepts the header `Idempotency-Key`, a request
with this header runs once. For a day, a retry by an authorized caller gets the same response. A
retry while the first request runs fails (409, `idempotency_in_progress`). Successful responses to
GET have an `ETag`. Each caller may send 600 requests a minute.
"""


@dataclass(frozen=True, slots=True)
class _ErrorResponse:
    """An error response that many operations share."""

    name: str  # in the components of the document
    when: str  # the cause of the error, as the response's description
    code: str  # in the example
    detail: str  # in the example


_ERROR_RESPONSES: Final = {  # by status
    400: _ErrorResponse(
        "BadJson", "The body is not valid JSON.", "invalid_json", "Cannot parse request body"
    ),
    401: _ErrorResponse(
        "NotSignedIn",
        "The request has neither a valid API key nor a valid session.",
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
        "version_conflict",
        "The current version is 7, not 6. Reload and try again.",
    ),
    412: _ErrorResponse(
        "VersionConflict",
        "`If-Match` does not name the current version.",
        "version_conflict",
        "The current version is 7, not 6. Reload and try again.",
    ),
    413: _ErrorResponse(
        "TooLarge", "The body is too large.", "too_large", "The body must not exceed 1 MiB."
    ),
    422: _ErrorResponse(
        "ValidationFailed",
        "A value is invalid; `field` names it.",
        "validation_failed",
        "Enter a whole number from 1 to 10000.",
    ),
    429: _ErrorResponse(
        "TooManyRequests",
        "Too many requests; `Retry-After` gives the seconds to wait.",
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
        "code": {"type": "string", "description": "Stable error code."},
        "detail": {"type": "string", "description": "Message for people."},
        "field": {"type": "string", "description": "The invalid field of the request."},
        "version_in_force": {"type": "integer", "description": "The current version."},
        "version_replaced": {
            "type": ["integer", "null"],
            "description": "The version that the request would have replaced.",
        },
    },
}
_IDEMPOTENCY_KEY: Final = {
    "in": "header",
    "name": "Idempotency-Key",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},  # ASCII
    "description": "A text that the caller chooses; requests with the same text run only once.",
    "example": "8c1f6c1e-3b0e-4f6e-9c55-6a2d7a0f3b61",
}


_IF_MATCH: Final = {
    "in": "header",
    "name": "If-Match",
    "required": False,
    "schema": {"type": "string", "maxLength": 32},
    "description": "The ETag of the version to replace.",
    "example": '"v7"',
}


# A field of `openapi_extra`: the operation accepts If-Match (optimistic_locking.ACCEPTS_IF_MATCH).
EXPECTED_VERSION_FIELD: Final = "x-expected-version"
_SAFE_TO_REPEAT_FIELD: Final = "x-no-idempotency-key"
# For `openapi_extra` of a POST that ignores an Idempotency-Key. It can run twice without harm: it
# changes nothing, it rejects a second change, or a second change does no harm (as with a leak
# report). Two kinds of operations must be marked with it: those that return a file, because only
# JSON responses are stored, and those that wait for another system, which an idempotent request may
# not do (idempotency.py).
SAFE_TO_REPEAT: Final = {_SAFE_TO_REPEAT_FIELD: True}


def is_safe_to_repeat(operation: Operation) -> bool:
    return _SAFE_TO_REPEAT_FIELD in (operation.openapi_extra or {})


class CaretApi(NinjaAPI):
    """django-ninja's API class, with short operation IDs and the shared errors and headers."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        group = (operation.tags or ["api"])[0]
        # A view is named `list_all`, because `list` would hide Python's type.
        return f"{group}.{operation.view_func.__name__.removesuffix('_all')}"

    def get_openapi_schema(self, **kwargs: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**kwargs)
        components = schema["components"]
        components.setdefault("schemas", {})["Problem"] = _PROBLEM_SCHEMA
        components["responses"] = {
            response.name: _build_response(status, response)
            for status, response in _ERROR_RESPONSES.items()
        }
        for path, operations in schema["paths"].items():
            for method, operation in operations.items():
                _complete_operation(path, method, operation)
        return schema


def _complete_operation(path: str, method: str, operation: dict[str, Any]) -> None:
    """Add the shared error responses and headers that apply to the operation."""
    if method == "post" and _SAFE_TO_REPEAT_FIELD not in operation:
        operation["parameters"] = [*operation.get("parameters", []), _IDEMPOTENCY_KEY]
    if EXPECTED_VERSION_FIELD in operation:
        operation["parameters"] = [*operation.get("parameters", []), _IF_MATCH]
    for status, response in _ERROR_RESPONSES.items():
        if _can_have_status(status, path, operation):
            reference = {"$ref": f"#/components/responses/{response.name}"}
            operation["responses"].setdefault(status, reference)


def _can_have_status(status: int, path: str, operation: dict[str, Any]) -> bool:
    """Return whether a response of the operation can have this error status."""
    if status in (401, 429):
        return True
    if status == 403:
        # Reports of leaked keys have no security scheme. They need neither a permission nor a CSRF
        # token.
        return "security" in operation
    if status == 412:
        return EXPECTED_VERSION_FIELD in operation
    if status == 404:
        return "{" in path
    if status == 409 and _IDEMPOTENCY_KEY in operation.get("parameters", []):
        return True
    if status == 422:
        return bool(operation.get("parameters")) or "requestBody" in operation
    return "requestBody" in operation  # 400 and 413, and 409 without an Idempotency-Key


def _build_response(status: int, response: _ErrorResponse) -> dict[str, Any]:
    example = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": response.code,
        "detail": response.detail,
    }
    content = {"schema": {"$ref": "#/components/schemas/Problem"}, "example": example}
    return {"description": response.when, "content": {"application/problem+json": content}}
