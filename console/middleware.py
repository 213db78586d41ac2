"""What each answer of the console carries."""

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse

from console.operators.door import is_operators

# Nothing from elsewhere, nothing inline. The console works without its one script, except for
# passkeys, which browsers give to scripts alone.
_DIRECTIVES: Final = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
]
POLICY: Final = "; ".join(_DIRECTIVES)
# The operators' pages have a typeface.
OPERATORS_POLICY: Final = "; ".join([*_DIRECTIVES, "font-src 'self'"])


class ContentSecurityPolicy:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        policy = OPERATORS_POLICY if is_operators(request) else POLICY
        response["Content-Security-Policy"] = policy
        response["Permissions-Policy"] = "interest-cohort=(), camera=(), microphone=()"
        # Pages show tenants' data: a shared computer's back button must not.
        if "Cache-Control" not in response:
            response["Cache-Control"] = "no-store"
        return response
