"""Where sign-ins by identity providers end, whatever they speak."""

from dataclasses import dataclass, field
from typing import Final

import structlog
from allauth.account.utils import perform_login
from django.contrib.auth import get_user_model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from caret.foundation.ids import TenantId
from console.sign_in.account import PROVIDER_TENANT
from tenants.errors import Forbidden
from tenants.identity.operations import admit

logger = structlog.get_logger(__name__)

FAILED: Final = "Your identity provider did not let you in. Try again, or ask your administrator."


@dataclass(frozen=True, slots=True)
class Arrival:
    """Whom a tenant's identity provider has let in."""

    tenant_id: TenantId
    email: str = field(repr=False)
    name: str = field(repr=False)
    target: str | None  # where he wanted to be; None: nowhere in particular


def let_in(request: HttpRequest, arrival: Arrival) -> HttpResponse:
    try:
        user_id = admit(
            tenant_id=arrival.tenant_id,
            email=arrival.email,
            name=arrival.name,
            now=timezone.now(),
        )
    except Forbidden as error:
        logger.warning("sign_in.provider_overstepped", tenant_id=arrival.tenant_id)
        return refusal(request, error.message)
    response: HttpResponse = perform_login(
        request,
        get_user_model().objects.get(pk=user_id),
        email_verification="none",
        redirect_url=arrival.target,
        signal_kwargs={PROVIDER_TENANT: arrival.tenant_id},
    )
    return response


def refusal(request: HttpRequest, message: str, status: int = 403) -> HttpResponse:
    context = {"message": message, "next": "/", "email": ""}
    return render(request, "console/sign_in.html", context, status=status)
