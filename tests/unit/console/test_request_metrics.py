"""The console's Prometheus metrics about its responses."""

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from console.web.request_metrics import RequestMetricsMiddleware, registry


def _count(**labels: str) -> float:
    return registry.get_sample_value("caret_console_requests_total", labels) or 0.0


@pytest.mark.parametrize(
    ("path", "area"),
    [
        ("/api/v1/members", "api"),
        ("/scim/v2/Users", "scim"),
        ("/usage?tenant=acme", "pages"),
        ("/apiary", "pages"),
    ],
)
def test_responses_are_counted_by_area_and_status_class(path: str, area: str) -> None:
    middleware = RequestMetricsMiddleware(lambda _: HttpResponse(status=503))
    before = _count(area=area, status="5xx")
    seconds_before = registry.get_sample_value(
        "caret_console_request_seconds_count", {"area": area}
    )

    middleware(RequestFactory().get(path))

    assert _count(area=area, status="5xx") == before + 1
    seconds = registry.get_sample_value("caret_console_request_seconds_count", {"area": area})
    assert seconds == (seconds_before or 0.0) + 1


def test_the_path_does_not_become_a_label() -> None:
    RequestMetricsMiddleware(lambda _: HttpResponse())(RequestFactory().get("/t/acme-secret"))

    samples = [sample for family in registry.collect() for sample in family.samples]
    assert samples
    assert "acme-secret" not in str(samples)
