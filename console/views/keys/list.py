"""The list of the tenant's API keys, and the page that creates a key."""

from typing import Any, Final

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods

from caret.contracts.api_key import KeyKind
from caret.foundation.ids import UserId
from console.layout.form_tokens import consume_form_token, issue_form_token
from console.layout.htmx import render_page
from console.layout.lists.list_page import CsvFile, ListPage, ListQuery
from console.layout.lists.sorting import SortOrders, TableSorting, with_query
from console.layout.permission_required import permission_required
from console.layout.tabs import Tab
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import translate_error
from console.texts.labels import KEY_KIND_LABELS
from console.views.keys.created import show_once
from console.views.keys.forms import NewKeyForm
from console.views.keys.presenters import STATE_NAMES, KeyLine, key_line
from tenants.base.errors import Conflict, Forbidden, InvalidValue
from tenants.base.pagination import MAX_PAGE, Page, map_page
from tenants.base.permissions import Permission
from tenants.identity.api_keys.operations import CreatedKey, create_key
from tenants.identity.api_keys.queries import KeyState
from tenants.identity.api_keys.scopes import serialize_scopes
from tenants.identity.api_keys.search import (
    KeyConcern,
    KeyCounts,
    KeyFilter,
    KeyOrder,
    count_keys,
    find_keys,
)
from tenants.identity.api_keys.validation import KeyRequest
from tenants.identity.members.search import find_member_by_email, list_emails
from tenants.policy.queries import get_policy

_FORM: Final = "new-key"  # purpose of the form token, which can be used only once
# The form field that shows an error of `create_key`, by the field that the error names.
_FIELDS: Final = {"owner_id": "owner", "expires_at": "lifetime", "scopes": "preset"}

# Values of the filter `kind`, besides those of KeyKind.
_PLAYGROUND: Final = "playground"
_DEVICE: Final = "device"
KEY_ORDERS: Final = SortOrders(
    default=TableSorting(KeyOrder.CREATED, is_descending=True),
    titles={
        KeyOrder.NAME: _("Key"),
        KeyOrder.CREATED: _("Created"),
        KeyOrder.EXPIRES: _("Expires"),
        KeyOrder.LAST_USED: _("Last used"),
    },
)


class KeyFilterForm(forms.Form):
    q = forms.CharField(
        label=_("Search"),
        max_length=100,
        required=False,
        widget=forms.TextInput({"type": "search", "placeholder": _("Name, owner or cpk_…")}),
    )
    kind = forms.ChoiceField(
        label=_("Kind"),
        required=False,
        choices=[
            ("", _("All")),
            *KEY_KIND_LABELS.items(),
            (_DEVICE, _("Editor")),
            (_PLAYGROUND, _("Playground")),
        ],
    )
    state = forms.ChoiceField(
        label=_("Status"), required=False, choices=[("", _("All")), *STATE_NAMES.items()]
    )
    # The links of the tabs set this parameter.
    concern = forms.ChoiceField(
        choices=[(concern.value, "") for concern in KeyConcern], required=False
    )


def _find_keys(query: ListQuery) -> Page[KeyLine]:
    page = find_keys(
        actor=query.actor,
        key_filter=_read_filter(query),
        limit=query.limit,
        cursor=query.cursor,
        now=query.now,
    )
    return map_page(page, lambda key: key_line(query.actor, key))


def _read_filter(query: ListQuery) -> KeyFilter:
    kind, state = query.filters.get("kind"), query.filters.get("state")
    return KeyFilter(
        text=query.filters.get("q", ""),
        kind=KeyKind(kind) if kind and kind not in (_PLAYGROUND, _DEVICE) else None,
        state=KeyState(state) if state else None,
        concern=_read_concern(query),
        # False: playground keys are left out, unless leaked keys are requested.
        is_playground=kind == _PLAYGROUND,
        is_device=True if kind == _DEVICE else None,  # None: editors' keys and other keys
        order=query.sorting.order,
        is_descending=query.sorting.is_descending,
    )


def _read_concern(query: ListQuery) -> KeyConcern | None:
    concern = query.filters.get("concern")
    return KeyConcern(concern) if concern else None


def _build_context(query: ListQuery, _page: Page[KeyLine]) -> dict[str, Any]:
    concern = _read_concern(query)
    counts = count_keys(actor=query.actor, now=query.now)
    return {
        "concern": concern,
        "counts": counts,
        "tabs": _build_tabs(query.request, concern, counts),
        "can_create": query.actor.has_permission(Permission.CREATE_KEYS),
        "can_revoke": query.actor.has_permission(Permission.REVOKE_KEYS),
        "list_url": reverse("console:keys"),
        "new_url": reverse("console:keys-new"),
    }


def _build_tabs(request: HttpRequest, current: KeyConcern | None, counts: KeyCounts) -> list[Tab]:
    titles_and_counts = {
        None: (gettext("All"), counts.listed),
        KeyConcern.IDLE: (gettext("Idle"), counts.idle),
        KeyConcern.UNOWNED: (gettext("Nobody responsible"), counts.unowned),
        KeyConcern.LEAKED: (gettext("Leaked"), counts.leaked),
    }
    return [
        Tab(
            f"{title} {number}",
            with_query(request, concern=concern),
            is_current=concern is current,
        )
        for concern, (title, number) in titles_and_counts.items()
    ]


# Columns of the CSV file.
KEY_COLUMNS: Final = {
    "key": lambda line: line.prefix,
    "name": lambda line: line.key.name,
    "kind": lambda line: line.key.kind,
    "owner": lambda line: line.key.owner_email,
    "state": lambda line: line.key.state,
    "created_at": lambda line: line.key.created_at,
    "expires_at": lambda line: line.key.expires_at,
    "last_used_at": lambda line: line.key.last_used_at,
    "revoked_at": lambda line: line.key.revoked_at,
    "scopes": lambda line: " ".join(serialize_scopes(line.key.scopes)),
    "networks": lambda line: " ".join(line.key.networks),
}
_KEYS: Final = ListPage(
    template="console/keys/list.html",
    fragment="console/keys/_list.html",
    query=_find_keys,
    form=KeyFilterForm,
    orders=KEY_ORDERS,
    context=_build_context,
    csv=CsvFile("keys", KEY_COLUMNS),
)


@require_GET
@member_required
def keys(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    if not member.actor.has_permission(Permission.READ_KEYS):
        member.actor.require(Permission.READ_OWN_KEYS)
        return redirect("console:my-keys")
    return _KEYS.render(request, member)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.CREATE_KEYS)
def new_key(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    max_days = get_policy(actor=member.actor).policy.max_key_lifetime_days
    if request.method == "GET":
        return _render_form(request, member, _build_form(request, member, max_days))
    if not consume_form_token(request, _FORM):
        messages.warning(
            request, gettext("You already submitted this form. We did not create a second key.")
        )
        return redirect("console:keys")
    form = _build_form(request, member, max_days)
    created_key = _create_key(member, form)
    if created_key is None:
        return _render_form(request, member, form, status=400)
    return show_once(request, member, created_key)


def _build_form(request: HttpRequest, member: CurrentMember, max_days: int | None) -> NewKeyForm:
    form = NewKeyForm(request.POST or None, initial={"owner": member.email})
    form.limit_lifetime(max_days)
    return form


def _render_form(
    request: HttpRequest, member: CurrentMember, form: NewKeyForm, status: int = 200
) -> HttpResponse:
    context = {
        "form": form,
        "form_token": issue_form_token(request, _FORM),
        "owners": list_emails(actor=member.actor, limit=MAX_PAGE),
        "list_url": reverse("console:keys"),
    }
    return render_page(request, member, "console/keys/create.html", context, status=status)


def _create_key(member: CurrentMember, form: NewKeyForm) -> CreatedKey | None:
    """Create the key. Return None, with an error in the form, if the key is rejected."""
    now = timezone.now()
    if not form.is_valid():
        return None
    try:
        kind = KeyKind(form.cleaned_data["kind"])
        key_request = KeyRequest(
            kind=kind,
            owner_id=None if kind is KeyKind.SERVICE else _find_owner(member, form),
            name=form.cleaned_data["name"],
            expires_at=form.expires_at(now),
            scopes=form.read_scopes(),
            networks=tuple(form.cleaned_data["networks"].split()),
        )
        return create_key(actor=member.actor, new=key_request, now=now)
    except InvalidValue as error:
        form.add_error(_FIELDS.get(error.field, error.field), translate_error(error))
    except (Conflict, Forbidden) as error:
        form.add_error(None, translate_error(error))
    return None


def _find_owner(member: CurrentMember, form: NewKeyForm) -> UserId:
    """Return the user ID of the member whose e-mail address is in the field `owner`.

    Raises InvalidValue.
    """
    owner = find_member_by_email(actor=member.actor, email=form.cleaned_data["owner"])
    if owner is None:
        raise InvalidValue("owner", "No member has this e-mail address.")
    return owner.user_id
