"""Whether this process answers. Asks nobody else: a console restarted does not mend Postgres."""

from django.http import HttpRequest, HttpResponse


def healthz(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok\n", content_type="text/plain")
