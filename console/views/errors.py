"""Responses to errors that no view handles: pages for people, problem documents for the REST API.

Django's `handler400` to `handler500`, CSRF_FAILURE_VIEW and RedisErrorMiddleware call these views.
"""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from console.api.problems import Problem, problem_response
from console.texts.error_messages import REDIS_UNAVAILABLE

_API_PREFIX: Final = "/api/"
_RETRY_AFTER_S: Final = 5  # while Redis does not respond
# Titles of the pages. The problem documents have the standard titles of HTTP.
_TITLES: Final = {
    400: _("Bad request"),
    403: _("Not allowed"),
    404: _("Not found"),
    500: _("Something went wrong"),
    503: _("Temporarily unavailable"),
}


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _render_problem(
        request,
        Problem(
            400,
            "bad_request",
            gettext_noop("We could not understand this request. Go back and try again."),
        ),
    )


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _render_problem(
        request, Problem(403, "forbidden", gettext_noop("You are not allowed to do this."))
    )


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _render_problem(
        request, Problem(404, "not_found", gettext_noop("This page does not exist."))
    )


def failed(request: HttpRequest) -> HttpResponse:
    return _render_problem(
        request,
        Problem(
            500,
            "internal_error",
            gettext_noop("The error is on our side. Try again in a moment."),
        ),
    )


def unavailable(request: HttpRequest) -> HttpResponse:
    """Return the response while Redis does not respond."""
    return _render_problem(
        request, Problem(503, "unavailable", REDIS_UNAVAILABLE, retry_after_s=_RETRY_AFTER_S)
    )


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    detail = gettext_noop("This form has expired. Go back, reload the page and try again.")
    return _render_problem(request, Problem(403, "csrf_failed", detail))


def _render_problem(request: HttpRequest, problem: Problem) -> HttpResponse:
    if request.path.startswith(_API_PREFIX):
        return problem_response(problem)
    context = {
        "status": problem.status,
        "title": _TITLES[problem.status],
        "detail": gettext(problem.detail),
    }
    response = render(request, "console/error.html", context, status=problem.status)
    if problem.retry_after_s is not None:
        response["Retry-After"] = str(problem.retry_after_s)
    return response
