"""Pages and parts of them: the same view answers a browser with the page and htmx with the part."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django_htmx.middleware import HtmxDetails

from console.sign_in.current_member import CurrentMember


def render_page(
    request: HttpRequest,
    member: CurrentMember,
    page: str,
    context: Mapping[str, Any],
    *,
    part: str | None = None,
    status: int = 200,
) -> HttpResponse:
    """`part`: the template that `page` includes, sent alone to who asks by htmx for it."""
    is_part = part is not None and is_htmx_fragment(request)
    template = part if is_part and part is not None else page
    response = render(request, template, {"member": member, **context}, status=status)
    if part is not None:
        patch_vary_headers(response, ["HX-Request"])
    return response


def is_htmx_fragment(request: HttpRequest) -> bool:
    """Not where htmx itself asks for the whole page (hx-boost, or what it lacks in its history)."""
    details = getattr(request, "htmx", None)  # set by HtmxMiddleware
    if not isinstance(details, HtmxDetails):
        return False
    return bool(details) and not details.boosted and not details.history_restore_request
