"""Self-service sign-up, if the installation allows it.

A form requests an e-mail with a link. The link opens the page that creates the tenant. The response
of the form does not tell whether an e-mail address has an account (tenants.identity.sign_up).

The link contains a token. `open_link` moves it into the session, so that the URL of the page does
not contain it.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, cast

from django import forms
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods
from redis import RedisError

from console.limits.throttling import (
    AttemptThrottled,
    count_request_of_network,
    count_sign_up,
)
from console.sign_in.current_member import client_address
from console.texts.error_messages import REDIS_UNAVAILABLE, translate_error
from tenants.base.errors import Conflict, InvalidValue, NotFound
from tenants.identity.members.operations import MAX_NAME_CHARS
from tenants.identity.sign_up import SignUpRequest, complete_sign_up, find_sign_up, request_sign_up

_FORM: Final = "console/sign_in/sign_up.html"
_CONFIRM: Final = "console/sign_in/confirm_sign_up.html"
_SESSION_TOKEN: Final = "sign-up"  # noqa: S105  # a key of the session, not a token
_RETRY_AFTER_S: Final = 5
_View = Callable[..., HttpResponse]


class SlugForm(forms.Form):
    slug = forms.CharField(
        label=_("Slug"),
        help_text=_(
            "The tenant’s name in URLs: letters a to z, digits and hyphens. It never changes."
        ),
        max_length=63,  # as in tenants.identity.members.operations.check_slug
        widget=forms.TextInput(
            {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
        ),
    )


class SignUpForm(SlugForm):
    company = forms.CharField(
        label=_("Company"),
        max_length=MAX_NAME_CHARS,
        widget=forms.TextInput({"autocomplete": "organization", "autofocus": True}),
    )
    email = forms.EmailField(
        label=_("Your work e-mail address"),
        max_length=254,  # RFC 5321 allows no longer address
        widget=forms.EmailInput({"autocomplete": "email"}),
    )
    field_order = ("company", "email", "slug")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["slug"].required = False
        self.fields["slug"].help_text = _(
            "If you leave this empty, we propose one based on the company’s name."
        )


def _sign_up_enabled(view: _View) -> _View:
    """Guard a view: 404 if the installation does not allow sign-up, 503 if Redis is unreachable."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: str, **kwargs: str) -> HttpResponse:
        if not settings.SELF_SIGN_UP:
            raise Http404
        try:
            return view(request, *args, **kwargs)
        except RedisError:
            response = render(
                request, _CONFIRM, {"refusal": gettext(REDIS_UNAVAILABLE)}, status=503
            )
            response["Retry-After"] = str(_RETRY_AFTER_S)
            return response

    return cast(_View, guarded)


@require_http_methods(["GET", "POST"])
@_sign_up_enabled
def sign_up(request: HttpRequest) -> HttpResponse:
    if request.method == "GET":
        return render(request, _FORM, {"form": SignUpForm()})
    form = SignUpForm(request.POST)
    if not form.is_valid():
        return render(request, _FORM, {"form": form}, status=400)
    sign_up_request = SignUpRequest(**form.cleaned_data)
    throttle = count_sign_up(email=sign_up_request.email, address=client_address(request))
    if throttle is not None:
        return _show_throttled(request, _FORM, {"form": form}, throttle)
    try:
        request_sign_up(sign_up_request)
    except InvalidValue as error:
        form.add_error(_field_of(form, error), translate_error(error))
        return render(request, _FORM, {"form": form}, status=400)
    except Conflict as error:
        return render(request, _FORM, {"form": form, "message": translate_error(error)}, status=409)
    return redirect("console:sign-up-sent")


@require_GET
@_sign_up_enabled
def link_sent(request: HttpRequest) -> HttpResponse:
    return render(request, "console/sign_in/sign_up_sent.html")


@require_GET
@_sign_up_enabled
def open_link(request: HttpRequest, token: str) -> HttpResponse:
    """Move the token into the session. Invalid tokens are not stored: anybody could send many."""
    throttle = count_request_of_network(address=client_address(request), purpose="sign-up-link")
    if throttle is not None:
        return _show_throttled(request, _CONFIRM, {"refusal": throttle.message}, throttle)
    try:
        find_sign_up(token)
    except NotFound as error:
        return render(request, _CONFIRM, {"refusal": translate_error(error)}, status=404)
    request.session[_SESSION_TOKEN] = token
    return redirect("console:sign-up-confirm")


@require_http_methods(["GET", "POST"])
@_sign_up_enabled
def confirm(request: HttpRequest) -> HttpResponse:
    """Show the form. A POST creates the tenant and redirects to the owner's invitation."""
    token = request.session.get(_SESSION_TOKEN, "")
    try:
        sign_up_request = find_sign_up(token)
        if request.method == "GET":
            form = SlugForm(initial={"slug": sign_up_request.slug})
            return render(request, _CONFIRM, {"sign_up_request": sign_up_request, "form": form})
        return _create_tenant(request, token, sign_up_request)
    except NotFound as error:
        return render(request, _CONFIRM, {"refusal": translate_error(error)}, status=404)


def _create_tenant(
    request: HttpRequest, token: str, sign_up_request: SignUpRequest
) -> HttpResponse:
    """Create the tenant, or show the form with its errors. Raises NotFound."""
    form = SlugForm(request.POST)
    if not form.is_valid():
        return render(
            request, _CONFIRM, {"sign_up_request": sign_up_request, "form": form}, status=400
        )
    try:
        created_tenant = complete_sign_up(
            token=token, slug=form.cleaned_data["slug"], now=timezone.now()
        )
    except InvalidValue as error:
        form.add_error(_field_of(form, error), translate_error(error))
        return render(
            request, _CONFIRM, {"sign_up_request": sign_up_request, "form": form}, status=400
        )
    except Conflict as error:
        context = {
            "sign_up_request": sign_up_request,
            "form": form,
            "message": translate_error(error),
        }
        return render(request, _CONFIRM, context, status=409)
    del request.session[_SESSION_TOKEN]
    # The last part of the invitation's URL is its token.
    invitation_token = created_tenant.owner_invitation.url.rpartition("/")[2]
    return redirect("console:invitation-link", invitation_token)


def _field_of(form: forms.Form, error: InvalidValue) -> str | None:
    """Return the form's field that the error is about; None: the form has no such field."""
    # The form calls the tenant's name `company`.
    field = {"name": "company"}.get(error.field, error.field)
    return field if field in form.fields else None


def _show_throttled(
    request: HttpRequest, page: str, context: dict[str, Any], throttle: AttemptThrottled
) -> HttpResponse:
    message = {"message": throttle.message}
    response = render(request, page, message | context, status=429)
    response["Retry-After"] = str(throttle.wait_s)
    return response
