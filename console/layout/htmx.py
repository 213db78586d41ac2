"""Pages and their fragments: one view sends the page to browsers and the fragment to htmx."""

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
    """Render the template `page`, or only its fragment `part` if htmx requested a fragment.

    `page` includes the template `part`. `part` is None if the page has no fragment.
    """
    template = part if part is not None and is_htmx_fragment(request) else page
    response = render(request, template, {"member": member, **context}, status=status)
    if part is not None:
        patch_vary_headers(response, ["HX-Request"])
    return response


def is_htmx_fragment(request: HttpRequest) -> bool:
    """Return whether htmx requests a fragment.

    For hx-boost, and to restore its history, htmx requests a whole page.
    """
    details = getattr(request, "htmx", None)  # set by HtmxMiddleware
    if not isinstance(details, HtmxDetails):
        return False
    # HtmxDetails is true if htmx sent the request.
    return bool(details) and not details.boosted and not details.history_restore_request
