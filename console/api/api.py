"""The root of the REST API: routers, authentication, and responses to errors."""

from collections.abc import Callable
from typing import Final

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from ninja.errors import AuthenticationError, HttpError, ValidationError

from caret.foundation.concurrency.bulkhead import BulkheadFull
from console.api import (
    audit,
    audit_sinks,
    budgets,
    consent,
    data_subjects,
    exports,
    invitations,
    invoices,
    keys,
    leak_reports,
    ledger,
    members,
    plans,
    platform_pools,
    platform_tenants,
    policy,
    policy_dry_run,
    policy_overrides,
    reports,
    retention,
    sign_in_settings,
    teams,
    usage,
)
from console.api.authentication import TOO_LARGE, KeyAuth, MemberAuth
from console.api.idempotency import idempotent
from console.api.openapi import DESCRIPTION, CaretApi
from console.api.problems import Problem, ProblemRaised, build_problem, problem_response
from tenants.base.errors import DomainError

NOT_SIGNED_IN: Final = Problem(401, "unauthenticated", "Sign in, or send an API key.")
TOO_MANY_AT_ONCE: Final = Problem(
    429,
    "too_many_concurrent_requests",
    "Your tenant already has too many outgoing requests. Try again.",
    retry_after_s=5,  # the timeout of most outgoing requests
)
# The codes for django-ninja's own errors: a body that is not JSON, and a failed CSRF check.
_CODES_BY_STATUS: Final = {400: "invalid_json", 403: "csrf_failed"}


def _build_api() -> CaretApi:
    api = CaretApi(
        title="Caret",
        version="1",
        description=DESCRIPTION,
        urls_namespace="api",
        auth=[KeyAuth(), MemberAuth()],
        docs_url=None,  # django-ninja's page would load scripts from another origin
        openapi_url="openapi.json",
    )
    api.add_decorator(idempotent, mode="view")
    for prefix, router in (
        ("audit", audit.router),
        ("audit/sinks", audit_sinks.router),
        ("consent", consent.router),
        ("budgets", budgets.router),
        ("data-subjects", data_subjects.router),
        ("domains", sign_in_settings.domains),
        ("exports", exports.router),
        ("invitations", invitations.router),
        ("invoices", invoices.router),
        ("keys", keys.router),
        ("leak-reports", leak_reports.router),
        ("ledger", ledger.router),
        ("members", members.router),
        ("plans", plans.router),
        ("platform/models", platform_pools.models),
        ("platform/pools", platform_pools.pools),
        ("platform/tenants", platform_tenants.router),
        ("platform/tenants", platform_pools.tenant_pools),
        ("policy", policy.router),
        ("policy", policy_dry_run.router),
        ("policy/overrides", policy_overrides.router),
        ("reports", reports.router),
        ("scim", sign_in_settings.scim),
        ("sign-in-settings", sign_in_settings.sign_in),
        ("retention", retention.router),
        ("teams", teams.router),
        ("tenant", members.tenant_router),
        ("usage", usage.router),
    ):
        api.add_router(prefix, router)
    for error_class, handler in _HANDLERS.items():
        api.add_exception_handler(error_class, handler)
    return api


def _respond_to_domain_error(_request: HttpRequest, error: DomainError) -> HttpResponse:
    return problem_response(build_problem(error))


def _respond_to_raised_problem(_request: HttpRequest, error: ProblemRaised) -> HttpResponse:
    return problem_response(error.problem)


def _respond_to_full_bulkhead(_request: HttpRequest, _error: BulkheadFull) -> HttpResponse:
    return problem_response(TOO_MANY_AT_ONCE)


def _respond_to_missing_credential(
    _request: HttpRequest, _error: AuthenticationError
) -> HttpResponse:
    return problem_response(NOT_SIGNED_IN)


def _respond_to_large_body(_request: HttpRequest, _error: RequestDataTooBig) -> HttpResponse:
    return problem_response(TOO_LARGE)


def _respond_to_invalid_request(_request: HttpRequest, error: ValidationError) -> HttpResponse:
    """Name the first invalid field and the reason, but not the value, which may be a secret."""
    first = error.errors[0]
    # `loc` begins with the source. For a body, the name of the endpoint's parameter follows, which
    # is always "body" in this API: ("query", "limit"), ("body", "body", "role").
    field = ".".join(str(part) for part in first["loc"][1:] if part != "body")
    return problem_response(Problem(422, "validation_failed", first["msg"], field or None))


def _respond_to_http_error(_request: HttpRequest, error: HttpError) -> HttpResponse:
    code = _CODES_BY_STATUS.get(error.status_code, "error")
    return problem_response(Problem(error.status_code, code, str(error)))


_HANDLERS: Final[dict[type[Exception], Callable[..., HttpResponse]]] = {
    DomainError: _respond_to_domain_error,
    ProblemRaised: _respond_to_raised_problem,
    BulkheadFull: _respond_to_full_bulkhead,
    AuthenticationError: _respond_to_missing_credential,
    RequestDataTooBig: _respond_to_large_body,
    ValidationError: _respond_to_invalid_request,
    HttpError: _respond_to_http_error,
}

api = _build_api()
