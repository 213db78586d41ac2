"""The health check of this process. It checks nothing else: a restart would not repair Postgres."""

from django.http import HttpRequest, HttpResponse


def healthz(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok\n", content_type="text/plain")
