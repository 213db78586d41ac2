"""Requests that may be sent again: `Idempotency-Key` on what makes something, ETags on what reads.

A POST with an Idempotency-Key (1 to 255 visible characters) is done once: sent again within a day
it gets the answer of the first time, and `Idempotent-Replayed: true`. What was refused is not kept,
so that a mended request may take the same key; nor is a file, which is made anew. Source:
draft-ietf-httpapi-idempotency-key-header.
"""

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.middleware.http import ConditionalGetMiddleware
from django.utils import timezone

from caret.foundation.postgres.tenancy import tenant
from console.api.authentication import find_caller
from console.api.problems import problem_of, problem_response
from tenants.errors import Conflict, Invalid
from tenants.idempotency.operations import Answer, Repeatable, find_answer, keep_answer
from tenants.members.actor import Actor

_HEADER: Final = "Idempotency-Key"
_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")
_FIRST_REFUSAL: Final = 400
_FILES: Final = ("application/zip",)
Run = Callable[..., HttpResponse]


def repeatable(run: Run) -> Run:
    """For django-ninja's `add_decorator(..., mode="view")`."""

    @wraps(run)
    def repeated(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method == "GET":
            return _conditional(request, run(request, *args, **kwargs))
        key = request.headers.get(_HEADER)
        if request.method != "POST" or key is None:
            return run(request, *args, **kwargs)
        if _KEY.fullmatch(key) is None:
            return problem_response(
                problem_of(Invalid(_HEADER, "An Idempotency-Key has 1 to 255 visible characters."))
            )
        actor = find_caller(request)
        if actor is None:
            return run(request, *args, **kwargs)  # which says so
        named = _named(request, actor, key)
        return _once(named, lambda: run(request, *args, **kwargs))

    return repeated


def _named(request: HttpRequest, actor: Actor, key: str) -> Repeatable:
    return Repeatable(
        tenant_id=actor.tenant_id,
        caller=actor.caller,
        key=key,
        method="POST",
        address=request.get_full_path(),
        body=request.body,
    )


def _once(named: Repeatable, run: Callable[[], HttpResponse]) -> HttpResponse:
    with tenant(named.tenant_id):
        try:
            found = find_answer(named, now=timezone.now())
        except Conflict as error:
            return problem_response(problem_of(error))
        if found is not None:
            answer = HttpResponse(found.body, "application/json", found.status)
            answer["Idempotent-Replayed"] = "true"
            return answer
        response = run()
        if response.status_code >= _FIRST_REFUSAL:
            transaction.set_rollback(True)
        elif response.headers.get("Content-Type") not in _FILES:
            keep_answer(named, Answer(response.status_code, response.content), now=timezone.now())
        return response


def _conditional(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """With an ETag; 304 for who has it already. Nothing of it may be kept by anybody between."""
    response["Cache-Control"] = "private, no-cache"
    if response.streaming or response.status_code >= _FIRST_REFUSAL:
        return response
    answered = ConditionalGetMiddleware(lambda _: response)(request)
    assert isinstance(answered, HttpResponse)
    return answered
