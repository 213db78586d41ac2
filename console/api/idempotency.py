"""Safe retries: the `Idempotency-Key` header for POST requests, ETags for GET requests.

A POST with an Idempotency-Key (1 to 255 visible ASCII characters) runs once. A retry within a day
gets the first response, with the header `Idempotent-Replayed: true`. Error responses are not
stored, so a corrected request may use the same Idempotency-Key. Source:
draft-ietf-httpapi-idempotency-key-header.

A request with an Idempotency-Key is one database transaction, so nothing in it may wait for other
systems. E-mails are sent after the commit. Endpoints that wait for other systems are marked
SAFE_TO_REPEAT, and ignore the header.
"""

import re
from collections.abc import Callable
from functools import partial, wraps
from types import MethodType
from typing import Any, Final

from django.core.exceptions import RequestDataTooBig
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.middleware.http import ConditionalGetMiddleware
from django.utils import timezone
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError
from ninja.operation import Operation

from caret.foundation.postgres.tenant_scope import tenant_scope
from console.api.authentication import require_authentication
from console.api.openapi import is_safe_to_repeat
from console.api.problems import ProblemRaised, build_problem, problem_response
from tenants.base.errors import Conflict, DomainError, InvalidValue
from tenants.privacy.idempotency.operations import (
    IdempotentRequest,
    StoredResponse,
    find_response,
    store_response,
)

_HEADER: Final = "Idempotency-Key"
_VALID_IDEMPOTENCY_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")  # visible ASCII
_FIRST_ERROR_STATUS: Final = 400
RunOperation = Callable[[], HttpResponse]
# Errors of _identify_request.
_REFUSALS: Final = (DomainError, ProblemRaised, HttpError, AuthenticationError, RequestDataTooBig)


def idempotent(run: MethodType) -> Callable[..., HttpResponse]:
    """Wrap an operation's `run`: a POST with an Idempotency-Key runs once, and a GET gets an ETag.

    A decorator for django-ninja's `add_decorator(..., mode="view")`.
    """
    operation = run.__self__
    assert isinstance(operation, Operation)
    accepts_idempotency_key = not is_safe_to_repeat(operation)
    api = _api_of(operation)

    @wraps(run)
    def run_idempotently(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        run_operation: RunOperation = partial(run, request, *args, **kwargs)
        if request.method == "GET":
            return _make_conditional(request, run_operation())
        idempotency_key = request.headers.get(_HEADER)
        if request.method != "POST" or idempotency_key is None or not accepts_idempotency_key:
            return run_operation()
        try:
            idempotent_request = _identify_request(request, idempotency_key)
        except _REFUSALS as error:
            return api.on_exception(request, error)
        return _run_once(idempotent_request, run_operation)

    return run_idempotently


def _api_of(operation: Operation) -> NinjaAPI:
    api = operation.api
    assert isinstance(api, NinjaAPI)
    return api


def _identify_request(request: HttpRequest, idempotency_key: str) -> IdempotentRequest:
    """Authenticate the caller, check the idempotency key and read the whole body.

    The body is read here, so that the transaction that follows does not wait for a slow client.
    Raises InvalidValue, RequestDataTooBig and the errors of require_authentication.
    """
    actor = require_authentication(request)
    if _VALID_IDEMPOTENCY_KEY.fullmatch(idempotency_key) is None:
        raise InvalidValue(_HEADER, "An Idempotency-Key must have 1 to 255 visible characters.")
    return IdempotentRequest(
        tenant_id=actor.tenant_id,
        caller=actor.rate_limit_key,
        authority=actor.authority,
        key=idempotency_key,
        method="POST",
        address=request.get_full_path(),
        body=request.body,
    )


def _run_once(idempotent_request: IdempotentRequest, run_operation: RunOperation) -> HttpResponse:
    """Return the stored response, or else run the operation and store its response.

    If the response is an error or cannot be stored, the operation's changes are rolled back.
    """
    with tenant_scope(idempotent_request.tenant_id):  # begins the transaction
        try:
            stored_response = find_response(idempotent_request, now=timezone.now())
            if stored_response is not None:
                return _replay_response(stored_response)
            response = run_operation()
            if response.status_code >= _FIRST_ERROR_STATUS:
                transaction.set_rollback(True)
            else:
                new_response = StoredResponse(response.status_code, response.content)
                store_response(idempotent_request, new_response, now=timezone.now())
        # Raised by find_response or store_response: run_operation returns errors as responses.
        except Conflict as error:
            transaction.set_rollback(True)
            return problem_response(build_problem(error))
        return response


def _replay_response(stored_response: StoredResponse) -> HttpResponse:
    response = HttpResponse(stored_response.body, "application/json", stored_response.status)
    response["Idempotent-Replayed"] = "true"
    return response


def _make_conditional(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Add an ETag to a successful response. Return status 304 if the caller's version is current.

    `console.web.middleware.NoStoreMiddleware` forbids browsers and proxies to store the response.
    A client must store the response and its ETag itself. A streaming response gets no ETag.
    """
    if response.streaming or response.status_code >= _FIRST_ERROR_STATUS:
        return response
    conditional_response = ConditionalGetMiddleware(lambda _: response)(request)
    assert isinstance(conditional_response, HttpResponse)
    return conditional_response
