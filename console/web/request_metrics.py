"""Prometheus metrics of the console's requests: counts and response times by area.

No metric has a label for a user or tenant.
"""

import time
from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse
from prometheus_client import CollectorRegistry, Counter, Histogram

from caret.foundation.web import connections
from console.sign_in.sessions.operator_cookies import is_operator_path

# Buckets around the target for pages, 300 ms, and the wait after which users retry, 2 s.
_BOUNDS_S: Final = (0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0)
_AREAS: Final = {"/api/": "api", "/scim/": "scim"}  # by the start of the path
registry: Final = CollectorRegistry()  # also has the metrics of the server's connections
_requests = Counter(
    "caret_console_requests", "Requests, by status class.", ["area", "status"], registry=registry
)
_seconds = Histogram(
    "caret_console_request_seconds",
    "Time from a request to the first byte of its response.",
    ["area"],
    buckets=_BOUNDS_S,
    registry=registry,
)
for _metric in connections.METRICS:
    registry.register(_metric)


class RequestMetricsMiddleware:
    """Counts and times requests. As the outermost middleware, it includes all other middleware."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began_s = time.perf_counter()
        response = self._get_response(request)
        area = _area_of(request)
        _seconds.labels(area).observe(time.perf_counter() - began_s)
        _requests.labels(area, f"{response.status_code // 100}xx").inc()
        return response


def _area_of(request: HttpRequest) -> str:
    if is_operator_path(request):
        return "operators"
    areas = (
        area for path_start, area in _AREAS.items() if request.path_info.startswith(path_start)
    )
    return next(areas, "pages")
