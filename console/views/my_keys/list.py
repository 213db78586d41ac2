"""The list of the user's own API keys, and the form that creates one within the policy."""

from typing import Any, Final

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods

from caret.contracts.api_key import KeyKind
from console.layout.form_tokens import consume_form_token, issue_form_token
from console.layout.htmx import render_page
from console.layout.lists.list_page import CsvFile, ListPage, ListQuery
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import translate_error
from console.views.keys.created import show_once
from console.views.keys.forms import BaseKeyForm
from console.views.keys.list import KEY_COLUMNS, KEY_ORDERS
from console.views.keys.presenters import MODE_NAMES, STATE_NAMES, KeyLine, key_line
from tenants.base.errors import Conflict, Forbidden, InvalidValue
from tenants.base.pagination import Page, map_page
from tenants.base.permissions import Permission
from tenants.identity.api_keys.operations import CreatedKey
from tenants.identity.api_keys.queries import KeyState
from tenants.identity.api_keys.scopes import KeyScope
from tenants.identity.api_keys.search import KeyFilter, find_keys
from tenants.identity.api_keys.validation import KeyRequest
from tenants.identity.own_keys.operations import OwnKeyTerms, create_own_key, find_own_key_terms

_FORM: Final = "my-key"  # purpose of the form token, which can be used only once
# The form field that shows an error of `create_own_key`, by the field that the error names.
_FORM_FIELDS: Final = {"expires_at": "lifetime", "scopes": "modes"}
# Values of the filter `origin`.
_DEVICES: Final = "devices"
_OTHERS: Final = "others"


class MyKeyFilterForm(forms.Form):
    q = forms.CharField(
        label=_("Search"),
        max_length=100,
        required=False,
        widget=forms.TextInput({"type": "search", "placeholder": _("Name or cpk_…")}),
    )
    origin = forms.ChoiceField(
        label=_("Created by"),
        required=False,
        choices=[
            ("", _("All")),
            (_DEVICES, _("Sign-in from an editor")),
            (_OTHERS, _("The console")),
        ],
    )
    state = forms.ChoiceField(
        label=_("Status"), required=False, choices=[("", _("All")), *STATE_NAMES.items()]
    )


class MyKeyForm(BaseKeyForm):
    def apply_terms(self, terms: OwnKeyTerms) -> None:
        """Offer the modes and lifetimes that the policy allows."""
        self.limit_lifetime(terms.max_days)
        modes = self.fields["modes"]
        assert isinstance(modes, forms.MultipleChoiceField)
        modes.choices = [
            (scope.value, name) for scope, name in MODE_NAMES.items() if scope in terms.scopes
        ]
        modes.initial = [scope.value for scope in terms.scopes]
        modes.required = True


def _find_own_keys(query: ListQuery) -> Page[KeyLine]:
    state, origin = query.filters.get("state"), query.filters.get("origin")
    key_filter = KeyFilter(
        text=query.filters.get("q", ""),
        state=KeyState(state) if state else None,
        owner_id=query.actor.user_id,
        is_device=(origin == _DEVICES) if origin else None,  # None: keys of both origins
        order=query.sorting.order,
        is_descending=query.sorting.is_descending,
    )
    page = find_keys(
        actor=query.actor,
        key_filter=key_filter,
        limit=query.limit,
        cursor=query.cursor,
        now=query.now,
    )
    return map_page(page, lambda key: key_line(query.actor, key))


def _build_context(query: ListQuery, _page: Page[KeyLine]) -> dict[str, Any]:
    return {
        "is_own": True,
        "can_create": find_own_key_terms(actor=query.actor).is_allowed,
        "can_revoke": query.actor.has_permission(Permission.MANAGE_OWN_KEYS),
        "list_url": reverse("console:my-keys"),
        "new_url": reverse("console:my-keys-new"),
    }


_MY_KEYS: Final = ListPage(
    template="console/my_keys/list.html",
    fragment="console/keys/_list.html",
    query=_find_own_keys,
    form=MyKeyFilterForm,
    orders=KEY_ORDERS,
    context=_build_context,
    csv=CsvFile("my-keys", KEY_COLUMNS),
)


@require_GET
@member_required
@permission_required(Permission.READ_OWN_KEYS)
def my_keys(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _MY_KEYS.render(request, member)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.MANAGE_OWN_KEYS)
def new_key(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    terms = find_own_key_terms(actor=member.actor)
    if not terms.is_allowed:
        raise PermissionDenied
    form = MyKeyForm(request.POST or None)
    form.apply_terms(terms)
    if request.method == "GET":
        return _render_page(request, member, form)
    if not consume_form_token(request, _FORM):
        messages.warning(
            request, gettext("You already submitted this form. We did not create a second key.")
        )
        return redirect("console:my-keys")
    created_key = _create_key(member, form)
    if created_key is None:
        return _render_page(request, member, form, status=400)
    return show_once(request, member, created_key, is_own=True)


def _render_page(
    request: HttpRequest, member: CurrentMember, form: MyKeyForm, status: int = 200
) -> HttpResponse:
    context = {
        "form": form,
        "form_token": issue_form_token(request, _FORM),
        "is_own": True,
        "list_url": reverse("console:my-keys"),
    }
    return render_page(request, member, "console/keys/create.html", context, status=status)


def _create_key(member: CurrentMember, form: MyKeyForm) -> CreatedKey | None:
    """Create the key. If that fails, add the error to the form and return None."""
    now = timezone.now()
    if not form.is_valid():
        return None
    key_request = KeyRequest(
        kind=KeyKind.DEVELOPER,
        owner_id=member.actor.user_id,
        name=form.cleaned_data["name"],
        expires_at=form.expires_at(now),
        scopes=frozenset(KeyScope(name) for name in form.cleaned_data["modes"]),
        networks=tuple(form.cleaned_data["networks"].split()),
    )
    try:
        return create_own_key(actor=member.actor, new=key_request, now=now)
    except InvalidValue as error:
        form.add_error(_FORM_FIELDS.get(error.field, error.field), translate_error(error))
    except (Conflict, Forbidden) as error:
        form.add_error(None, translate_error(error))
    return None
