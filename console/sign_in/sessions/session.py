"""The facts that a session remembers about its sign-in.

A session started by a tenant's identity provider is limited to that tenant: one tenant's assertions
mean nothing to another (ADR 0061).
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


def provider_tenant_of(request: HttpRequest) -> TenantId | None:
    """Return the tenant whose provider started the session; None if a password or passkey did."""
    tenant_id = request.session.get(_BY_PROVIDER)
    return None if tenant_id is None else TenantId(tenant_id)


def set_session_provider(
    request: HttpRequest, tenant_id: TenantId | None, signed_in_at_s: int | None
) -> None:
    """Remember the provider of the sign-in. `signed_in_at_s`: see `SsoLogin`."""
    if tenant_id is None:
        request.session.pop(_BY_PROVIDER, None)
        request.session.pop(_BY_PROVIDER_AT, None)
    else:
        request.session[_BY_PROVIDER] = tenant_id
        # A time in the future would count as a recent authentication for too long.
        request.session[_BY_PROVIDER_AT] = min(signed_in_at_s or 0, int(time.time()))


def signed_in_at_s(request: HttpRequest) -> int:
    """Return the Unix time of the authentication at the provider; 0 if unknown."""
    return int(request.session.get(_BY_PROVIDER_AT, 0))


def password_session_required(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Guard pages that change the account's credentials: a provider's session may not use them."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if provider_tenant_of(request) is not None:
            return render(request, "console/sign_in/provider_required.html", status=403)
        return view(request, *args, **kwargs)

    return guarded
