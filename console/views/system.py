"""The health check and the public signing keys, for programs."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from caret.foundation.crypto.signing import write_public_keys
from tenants.base.signatures.signing_keys import load_signing_keys


def healthz(request: HttpRequest) -> HttpResponse:
    # Postgres is not checked: after a failed check the console is restarted, which would not help.
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
def public_keys(request: HttpRequest) -> HttpResponse:
    text = write_public_keys(load_signing_keys().public_keys())
    return HttpResponse(
        text, content_type="application/json", headers={"Cache-Control": "public, max-age=300"}
    )
