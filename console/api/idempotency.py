"""Requests that may be sent again: `Idempotency-Key` on what makes something, ETags on what reads.

A POST with an Idempotency-Key (1 to 255 visible characters) is done once: sent again within a day
it gets the answer of the first time, and `Idempotent-Replayed: true`. What was refused is not kept,
so that a mended request may take the same key. Source: draft-ietf-httpapi-idempotency-key-header.

The request is one transaction, so nothing in it may wait for anybody outside: mail goes out once it
is committed, and what asks others and waits for them is DONE_ANEW.
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
from console.api.openapi import is_done_anew
from console.api.problems import ProblemRaised, build_problem, problem_response
from tenants.base.errors import Conflict, DomainError, InvalidValue
from tenants.privacy.idempotency.operations import (
    IdempotentRequest,
    StoredResponse,
    find_response,
    store_response,
)

_HEADER: Final = "Idempotency-Key"
_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")
_FIRST_REFUSAL: Final = 400
Run = Callable[[], HttpResponse]
_REFUSALS: Final = (DomainError, ProblemRaised, HttpError, AuthenticationError, RequestDataTooBig)


def idempotent(run: MethodType) -> Callable[..., HttpResponse]:
    """For django-ninja's `add_decorator(..., mode="view")`, which gives an operation's `run`."""
    operation = run.__self__
    assert isinstance(operation, Operation)
    is_once, api = not is_done_anew(operation), _api_of(operation)

    @wraps(run)
    def repeated(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        ask: Run = partial(run, request, *args, **kwargs)
        if request.method == "GET":
            return _conditional(request, ask())
        key = request.headers.get(_HEADER)
        if request.method != "POST" or key is None or not is_once:
            return ask()
        try:
            named = _named(request, key)
        except _REFUSALS as error:
            return api.on_exception(request, error)
        return _once(named, ask)

    return repeated


def _api_of(operation: Operation) -> NinjaAPI:
    api = operation.api
    assert isinstance(api, NinjaAPI)
    return api


def _named(request: HttpRequest, key: str) -> IdempotentRequest:
    """Raises what refuses the caller, or his word; with all of the body read, so that no
    transaction waits for who sends it."""
    actor = require_authentication(request)
    if _KEY.fullmatch(key) is None:
        raise InvalidValue(_HEADER, "An Idempotency-Key has 1 to 255 visible characters.")
    return IdempotentRequest(
        tenant_id=actor.tenant_id,
        caller=actor.rate_limit_key,
        authority=actor.authority,
        key=key,
        method="POST",
        address=request.get_full_path(),
        body=request.body,
    )


def _once(named: IdempotentRequest, run: Run) -> HttpResponse:
    with tenant_scope(named.tenant_id):
        try:
            found = find_response(named, now=timezone.now())
            if found is not None:
                return _replayed(found)
            response = run()
            if response.status_code >= _FIRST_REFUSAL:
                transaction.set_rollback(True)
            else:
                answer = StoredResponse(response.status_code, response.content)
                store_response(named, answer, now=timezone.now())
        except Conflict as error:
            transaction.set_rollback(True)
            return problem_response(build_problem(error))
        return response


def _replayed(found: StoredResponse) -> HttpResponse:
    answer = HttpResponse(found.body, "application/json", found.status)
    answer["Idempotent-Replayed"] = "true"
    return answer


def _conditional(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Add an ETag; answer 304 to callers that have it already. `console.middleware.NoStore` keeps
    caches from storing it: clients remember ETags by themselves."""
    if response.streaming or response.status_code >= _FIRST_REFUSAL:
        return response
    answered = ConditionalGetMiddleware(lambda _: response)(request)
    assert isinstance(answered, HttpResponse)
    return answered
