"""The forms that set the identity provider (OpenID Connect or SAML), and its removal."""

from collections.abc import Callable
from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from caret.foundation.concurrency.bulkhead import BulkheadFull
from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.layout.step_up import step_up_required
from console.layout.toasts import toast
from console.limits.outbound_limit import OUTBOUND_LIMIT
from console.sign_in.current_member import CurrentMember, member_required
from console.sign_in.sessions.session_exemption import exempt_session
from console.texts.error_messages import translate_error
from console.views.sign_in_settings.presenters import build_service_provider_info
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Permission
from tenants.identity.sso.metadata_fetch import fetch_metadata
from tenants.identity.sso.operations import (
    OidcProviderConfig,
    SamlProviderConfig,
    remove_provider,
    set_provider,
    set_saml_provider,
)
from tenants.identity.sso.queries import get_rules

_MAX_CLIENT_CHARS: Final = 200  # of client ID and client secret
_MAX_URL_CHARS: Final = 500
_MAX_METADATA_CHARS: Final = 200_000


class OpenIdForm(forms.Form):
    issuer = forms.CharField(
        label=_("Issuer"),
        max_length=_MAX_URL_CHARS,
        widget=forms.URLInput({"placeholder": "https://login.example.com"}),
        help_text=_("We load /.well-known/openid-configuration from this address."),
    )
    client_id = forms.CharField(label=_("Client ID"), max_length=_MAX_CLIENT_CHARS)
    client_secret = forms.CharField(
        label=_("Client secret"),
        max_length=_MAX_CLIENT_CHARS,
        widget=forms.PasswordInput({"autocomplete": "off"}),
        help_text=_("Stored encrypted and never shown again."),
    )


class SamlForm(forms.Form):
    metadata_url = forms.CharField(
        label=_("Metadata URL"),
        required=False,
        max_length=_MAX_URL_CHARS,
        widget=forms.URLInput({"placeholder": "https://login.example.com/saml.xml"}),
        help_text=_("We load it once, when you save."),
    )
    metadata = forms.CharField(
        label=_("Or paste the metadata"),
        required=False,
        max_length=_MAX_METADATA_CHARS,
        widget=forms.Textarea({"rows": 6, "class": "mono", "placeholder": "<EntityDescriptor …"}),
    )


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_SIGN_IN_SETTINGS)
@step_up_required
def set_up_open_id(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    form = OpenIdForm(request.POST or None)

    def save_provider(session_key: str | None) -> None:
        config = OidcProviderConfig(**form.cleaned_data)
        set_provider(
            actor=member.actor, new=config, now=timezone.now(), exempt_session_key=session_key
        )

    return _handle_form(request, member, form, save_provider)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_SIGN_IN_SETTINGS)
@step_up_required
def set_up_saml(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    form = SamlForm(request.POST or None)

    def fetch_document(url: str) -> str:
        with OUTBOUND_LIMIT.acquire(member.actor.tenant_id):
            return fetch_metadata(url)

    def save_provider(session_key: str | None) -> None:
        fields = form.cleaned_data
        config = SamlProviderConfig(
            fields["metadata"] or None, fields["metadata_url"] or None, fetch_document
        )
        set_saml_provider(
            actor=member.actor, config=config, now=timezone.now(), exempt_session_key=session_key
        )

    return _handle_form(request, member, form, save_provider)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_SIGN_IN_SETTINGS)
@step_up_required
def remove(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    if request.method == "GET":
        return render_page(
            request, member, "console/sign_in_settings/remove_identity_provider.html", {}
        )
    with exempt_session(request, member.actor.tenant_id, member.email) as session_key:
        remove_provider(actor=member.actor, now=timezone.now(), exempt_session_key=session_key)
    toast(request, gettext("Identity provider removed. Members sign in with passwords again."))
    return redirect("console:access")


def _handle_form(
    request: HttpRequest,
    member: CurrentMember,
    form: forms.Form,
    save: Callable[[str | None], None],
) -> HttpResponse:
    """Show the form, or save the provider. `save` gets the key of the session that stays valid."""
    context: dict[str, Any] = {
        "form": form,
        "service_provider": build_service_provider_info(member),
        "is_saml": isinstance(form, SamlForm),
        "has_provider": get_rules(actor=member.actor).provider is not None,
    }
    page = "console/sign_in_settings/identity_provider.html"
    if request.method == "GET":
        return render_page(request, member, page, context)
    if not form.is_valid() or not _save_provider(request, member, form, save):
        return render_page(request, member, page, context, status=400)
    toast(request, gettext("Identity provider saved. Test it in a private window now."))
    return redirect("console:access")


def _save_provider(
    request: HttpRequest,
    member: CurrentMember,
    form: forms.Form,
    save: Callable[[str | None], None],
) -> bool:
    """Save the provider. If that fails, add the error to the form and return False."""
    try:
        with exempt_session(request, member.actor.tenant_id, member.email) as session_key:
            save(session_key)
    except InvalidValue as error:
        form.add_error(error.field if error.field in form.fields else None, translate_error(error))
    except BulkheadFull:
        form.add_error(
            None, gettext("Too many outgoing requests right now. Try again in a moment.")
        )
    return not form.errors
