"""What each answer of the console carries."""

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse

# Nothing from elsewhere, nothing inline; the console works without scripts.
POLICY: Final = "; ".join(
    [
        "default-src 'none'",
        "style-src 'self'",
        "img-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)


class ContentSecurityPolicy:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        response["Content-Security-Policy"] = POLICY
        response["Permissions-Policy"] = "interest-cohort=(), camera=(), microphone=()"
        # Pages show tenants' data: a shared computer's back button must not.
        if "Cache-Control" not in response:
            response["Cache-Control"] = "no-store"
        return response
