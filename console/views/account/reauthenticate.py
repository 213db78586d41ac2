"""Reauthentication of users of an identity provider: they sign in there again."""

from typing import Final
from urllib.parse import urlencode

from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from console.layout.htmx import render_page
from console.layout.pending_form import find_pending_form
from console.sign_in.current_member import CurrentMember, member_required
from console.sign_in.next_page import next_page
from console.sign_in.session import provider_of
from console.views.sign_in import to_provider
from tenants.identity.sso.queries import provider_for

_PAGE: Final = "console/account/go_on.html"
_GONE: Final = 410


@require_GET
@member_required
def resume(request: HttpRequest, member: CurrentMember, token: str) -> HttpResponse:
    form = find_pending_form(member.actor, token)
    return render_page(request, member, _PAGE, {"form": form}, status=200 if form else _GONE)


@require_http_methods(["GET", "POST"])
@member_required
def sign_in_again(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    target = next_page(request)
    if request.method == "GET":
        return render_page(request, member, "console/account/sign_in_again.html", {"next": target})
    provider = provider_for(member.email)
    if provider is not None and provider.tenant_id == provider_of(request):
        return to_provider(request, provider, target, again=True)
    # The domain now belongs to another provider, or to none: start a new sign-in.
    logout(request)
    return redirect(f"{reverse('console:sign-in')}?{urlencode({'next': target})}")
