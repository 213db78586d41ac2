"""The public keys that verify this installation's signatures, without sign-in."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from caret.foundation.crypto.signing import write_public_keys
from tenants.base.signing_keys import signing_keys


@require_safe
def public_keys(request: HttpRequest) -> HttpResponse:
    text = write_public_keys(signing_keys().public_keys())
    return HttpResponse(
        text, content_type="application/json", headers={"Cache-Control": "public, max-age=300"}
    )
