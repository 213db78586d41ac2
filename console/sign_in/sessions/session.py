"""The facts that a session stores about its sign-in.

A session that a tenant's identity provider started is limited to that tenant, because other tenants
do not trust that provider (ADR 0061).
"""

import time
from collections.abc import Callable
from functools import wraps
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from caret.foundation.ids import TenantId

# Names in the session. The values are a tenant's ID and a Unix time in seconds.
_PROVIDER_TENANT: Final = "signed-in-by-provider"
_PROVIDER_SIGNED_IN_AT: Final = "signed-in-by-provider-at"


def provider_tenant_of(request: HttpRequest) -> TenantId | None:
    """Return the tenant whose identity provider started the session.

    None: the user signed in with a password or passkey.
    """
    tenant_id = request.session.get(_PROVIDER_TENANT)
    return None if tenant_id is None else TenantId(tenant_id)


def update_session_provider(
    request: HttpRequest, tenant_id: TenantId | None, signed_in_at_s: int | None
) -> None:
    """Store the tenant whose identity provider authenticated the user.

    If `tenant_id` is None, no provider did, and facts of an earlier sign-in are removed. For
    `signed_in_at_s`, see `SsoLogin` (console.sign_in.sso.login).
    """
    if tenant_id is None:
        request.session.pop(_PROVIDER_TENANT, None)
        request.session.pop(_PROVIDER_SIGNED_IN_AT, None)
    else:
        request.session[_PROVIDER_TENANT] = tenant_id
        # A time in the future would count as a recent authentication for too long.
        request.session[_PROVIDER_SIGNED_IN_AT] = min(signed_in_at_s or 0, int(time.time()))


def provider_signed_in_at_s(request: HttpRequest) -> int:
    """Return the Unix time of the authentication at the provider; 0 if unknown."""
    return int(request.session.get(_PROVIDER_SIGNED_IN_AT, 0))


def password_session_required(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Answer 403 to a session that an identity provider started.

    For pages that change the account's credentials, which are valid for all the user's tenants.
    """

    @wraps(view)
    def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if provider_tenant_of(request) is not None:
            return render(request, "console/sign_in/provider_required.html", status=403)
        return view(request, *args, **kwargs)

    return guarded
