"""The page of sign-in settings. After an invalid form, it shows the form's input and errors."""

from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from console.layout.form_tokens import issue_form_token
from console.layout.htmx import render_page
from console.sign_in.current_member import CurrentMember
from console.texts.labels import ROLE_LABELS
from tenants.base.permissions import Permission, Role
from tenants.identity.domains.queries import list_domains
from tenants.identity.scim.queries import list_group_roles
from tenants.identity.scim.tokens import MAX_NAME_CHARS, list_scim_tokens
from tenants.identity.sso.queries import get_rules

TOKEN_FORM: Final = "scim-token"  # noqa: S105  # purpose of the form token, not a token
_MAX_DOMAIN_CHARS: Final = 253  # the limit of DNS


class DomainForm(forms.Form):
    domain = forms.CharField(
        label=_("Domain"),
        max_length=_MAX_DOMAIN_CHARS,
        widget=forms.TextInput({"autocomplete": "off", "placeholder": "example.com"}),
    )


class TokenForm(forms.Form):
    token_name = forms.CharField(
        label=_("Token name"),
        max_length=MAX_NAME_CHARS,
        widget=forms.TextInput({"autocomplete": "off", "placeholder": "Entra ID"}),
    )


@dataclass(frozen=True, slots=True)
class ServiceProviderInfo:
    """The URLs of this installation that the settings of an identity provider need."""

    redirect_url: str  # for OpenID Connect
    entity_id: str  # for SAML; also the URL of our metadata
    acs_url: str  # for SAML: where the browser posts the assertion
    scim_url: str
    sign_in_url: str  # of the sign-in page, to test the provider


def build_service_provider_info(member: CurrentMember) -> ServiceProviderInfo:
    base, tenant_id = settings.CONSOLE_URL.rstrip("/"), member.actor.tenant_id
    return ServiceProviderInfo(
        # A tenant has at most one provider, so the tenant's ID is also the provider's ID in URLs.
        redirect_url=base + reverse("openid_connect_callback", args=[tenant_id]),
        entity_id=base + reverse("saml_metadata", args=[tenant_id]),
        acs_url=base + reverse("saml_consume", args=[tenant_id]),
        scim_url=f"{base}/scim/v2",
        sign_in_url=base + reverse("console:sign-in"),
    )


def render_settings_page(
    request: HttpRequest, member: CurrentMember, *, status: int = 200, **bound_forms: Any
) -> HttpResponse:
    """Show the page. `bound_forms` can contain a submitted `domain_form` or `token_form`."""
    actor = member.actor
    tokens = list_scim_tokens(actor=actor)
    context = {
        "rules": get_rules(actor=actor),
        "domains": list_domains(actor=actor),
        "tokens": [token for token in tokens if token.revoked_at is None],
        "num_revoked": sum(token.revoked_at is not None for token in tokens),
        "groups": list_group_roles(actor=actor),
        # A group cannot make its members owners.
        "roles": [(role.value, name) for role, name in ROLE_LABELS.items() if role != Role.OWNER],
        "service_provider": build_service_provider_info(member),
        "can_change": actor.has_permission(Permission.WRITE_SIGN_IN_SETTINGS),
        "domain_form": DomainForm(),
        "token_form": TokenForm(),
        "form_token": issue_form_token(request, TOKEN_FORM),
        **bound_forms,
    }
    return render_page(
        request, member, "console/sign_in_settings/detail.html", context, status=status
    )
