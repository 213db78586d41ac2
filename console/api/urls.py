"""The URLs of the REST API, and the response for paths that match none of them."""

from django.http import HttpRequest, HttpResponse
from django.urls import path, re_path

from console.api.api import api
from console.api.problems import Problem, problem_response


def endpoint_not_found(request: HttpRequest) -> HttpResponse:
    return problem_response(Problem(404, "not_found", "This endpoint does not exist."))


urlpatterns = [path("", api.urls), re_path("^", endpoint_not_found)]
