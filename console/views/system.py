"""Responses for programs: the health check, and the public keys that verify signed documents."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from caret.foundation.crypto.signing import write_public_keys
from tenants.base.signatures.signing_keys import load_signing_keys


def healthz(request: HttpRequest) -> HttpResponse:
    # Postgres is not checked. After a failed check, the console is restarted, and a restart does
    # not repair Postgres.
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
def public_keys(request: HttpRequest) -> HttpResponse:
    text = write_public_keys(load_signing_keys().public_keys())
    return HttpResponse(
        text, content_type="application/json", headers={"Cache-Control": "public, max-age=300"}
    )
