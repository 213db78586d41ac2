"""What goes wrong, as a page for people and as a problem document for programs."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from console.api.problems import Problem, problem_response

_API: Final = "/api/"
_RETRY_AFTER_S: Final = 5


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _answer(request, Problem(400, "bad_request", "This request makes no sense."))


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _answer(request, Problem(403, "forbidden", "Your role does not allow this."))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _answer(request, Problem(404, "not_found", "There is nothing here."))


def failed(request: HttpRequest) -> HttpResponse:
    return _answer(request, Problem(500, "internal", "This went wrong on our side."))


def unavailable(request: HttpRequest) -> HttpResponse:
    detail = "This is not possible right now: Redis does not answer."
    return _answer(request, Problem(503, "unavailable", detail, retry_after_s=_RETRY_AFTER_S))


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    detail = "This form is too old, or it did not come from here. Go back, reload, try again."
    return _answer(request, Problem(403, "csrf", detail))


def _answer(request: HttpRequest, problem: Problem) -> HttpResponse:
    if request.path.startswith(_API):
        return problem_response(problem)
    response = render(request, "console/error.html", {"problem": problem}, status=problem.status)
    if problem.retry_after_s is not None:
        response["Retry-After"] = str(problem.retry_after_s)
    return response
