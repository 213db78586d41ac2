"""What a session remembers of how it began.

One that a tenant's identity provider has begun is that tenant's alone: what one tenant asserts is
worth nothing to another (ADR 0061).
"""

import time
from collections.abc import Callable
from functools import wraps
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from caret.foundation.ids import TenantId

_BY_PROVIDER: Final = "signed-in-by-provider"
_BY_PROVIDER_AT: Final = "signed-in-by-provider-at"


def provider_of(request: HttpRequest) -> TenantId | None:
    """The tenant whose provider began the session; None: a password did."""
    tenant_id = request.session.get(_BY_PROVIDER)
    return None if tenant_id is None else TenantId(tenant_id)


def set_session_provider(
    request: HttpRequest, tenant_id: TenantId | None, signed_in_at_s: int | None
) -> None:
    """`signed_in_at_s`: as in `Arrival`."""
    if tenant_id is None:
        request.session.pop(_BY_PROVIDER, None)
    else:
        request.session[_BY_PROVIDER] = tenant_id
        # A provider that writes the future would make its people fresh until then.
        request.session[_BY_PROVIDER_AT] = min(signed_in_at_s or 0, int(time.time()))


def signed_in_at_s(request: HttpRequest) -> int:
    """When he showed a provider who he is, in seconds since 1970; 0: none says."""
    return int(request.session.get(_BY_PROVIDER_AT, 0))


def password_session_required(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """For pages on what opens the account everywhere: no provider's matter."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if provider_of(request) is not None:
            return render(request, "console/by_provider.html", status=403)
        return view(request, *args, **kwargs)

    return guarded
