"""The list of API keys: the tenant's, or only the user's own."""

from typing import Final

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from caret.contracts.api_key import KeyKind
from console.layout.htmx import render_page
from console.layout.lists.csv_response import (
    CsvRows,
    collect_rows,
    csv_error,
    csv_response,
    notes_of,
)
from console.layout.lists.sorting import TableSorting, headings, read_sorting, with_query
from console.layout.tabs import Tab
from console.sign_in.current_member import CurrentMember, member_required
from console.views.keys.presenters import KIND_NAMES, STATE_NAMES, key_line, key_lines
from tenants.base.errors import Forbidden, InvalidValue
from tenants.base.pagination import MAX_PAGE, Page
from tenants.base.permissions import Permission
from tenants.identity.api_keys.queries import KeyState, KeyView
from tenants.identity.api_keys.scopes import stored
from tenants.identity.api_keys.search import (
    KeyConcern,
    KeyCounts,
    KeyFilter,
    KeyOrder,
    count_keys,
    find_keys,
)
from tenants.security.authorization.actor import Actor

_PAGE_ROWS: Final = 25
_PLAYGROUND: Final = "playground"
_NEWEST: Final = TableSorting(KeyOrder.CREATED, is_descending=True)
_TITLES: Final = {
    KeyOrder.NAME: _("Key"),
    KeyOrder.CREATED: _("Created"),
    KeyOrder.EXPIRES: _("Expires"),
    KeyOrder.LAST_USED: _("Last used"),
}


class FindKeys(forms.Form):
    q = forms.CharField(label=_("Search"), max_length=100, required=False, widget=forms.TextInput(
        {"type": "search", "placeholder": _("Name, owner or cpk_…")}
    ))  # fmt: skip
    kind = forms.ChoiceField(
        label=_("Kind"),
        required=False,
        choices=[("", _("All")), *KIND_NAMES.items(), (_PLAYGROUND, _("Playground"))],
    )
    state = forms.ChoiceField(
        label=_("Status"), required=False, choices=[("", _("All")), *STATE_NAMES.items()]
    )


class _LookForm(forms.Form):
    """The parameter of the tabs."""

    look = forms.ChoiceField(choices=[(each.value, "") for each in KeyConcern], required=False)


@require_GET
@member_required
def keys(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    actor, now = member.actor, timezone.now()
    form, look = FindKeys(request.GET), _LookForm(request.GET)
    is_file = request.GET.get("as") == "csv"
    if is_file and not (form.is_valid() and look.is_valid()):
        return csv_error(form, look)
    sorting = read_sorting(request, _NEWEST)
    wanted = _wanted(form, look, sorting)

    def page_after(cursor: str | None, limit: int = MAX_PAGE) -> Page[KeyView]:
        return find_keys(actor=actor, wanted=wanted, limit=limit, cursor=cursor, now=now)

    try:
        if is_file:
            return _file(actor, collect_rows(page_after))
        page = page_after(request.GET.get("cursor"), _PAGE_ROWS)
        counts = count_keys(actor=actor, now=now)
    except Forbidden as error:
        raise PermissionDenied from error
    except InvalidValue as error:
        raise Http404 from error
    context = {
        "form": form,
        "lines": key_lines(actor, page.rows),
        "headings": headings(request, sorting, _TITLES),
        "next_url": with_query(request, cursor=page.next_cursor) if page.next_cursor else "",
        "file_url": with_query(request, **{"as": "csv"}),
        "is_narrowed": bool(request.GET),
        "concern": wanted.concern,
        "counts": counts,
        "tabs": _tabs(request, wanted.concern, counts),
        "sees_all": actor.has_permission(Permission.READ_KEYS),
        "can_create": actor.has_permission(Permission.CREATE_KEYS),
    }
    return render_page(
        request, member, "console/keys/keys.html", context, part="console/keys/_rows.html"
    )


def _wanted(form: FindKeys, look: _LookForm, sorting: TableSorting[KeyOrder]) -> KeyFilter:
    """Return the filter without invalid values: a link may come from an older release."""
    form.is_valid()
    look.is_valid()
    kind, state = form.cleaned_data.get("kind"), form.cleaned_data.get("state")
    concern = look.cleaned_data.get("look")
    return KeyFilter(
        text=form.cleaned_data.get("q", ""),
        kind=KeyKind(kind) if kind and kind != _PLAYGROUND else None,
        state=KeyState(state) if state else None,
        concern=KeyConcern(concern) if concern else None,
        is_playground=kind == _PLAYGROUND,
        order=sorting.order,
        is_descending=sorting.is_descending,
    )


def _tabs(request: HttpRequest, here: KeyConcern | None, counts: KeyCounts) -> list[Tab]:
    named = {
        None: (gettext("All"), counts.listed),
        KeyConcern.IDLE: (gettext("Idle"), counts.idle),
        KeyConcern.UNOWNED: (gettext("Without an owner"), counts.unowned),
        KeyConcern.LEAKED: (gettext("Leaked"), counts.leaked),
    }
    return [
        Tab(f"{title} {number}", with_query(request, look=concern), concern is here)
        for concern, (title, number) in named.items()
    ]


def _file(actor: Actor, listed: CsvRows[KeyView]) -> HttpResponse:
    header = (
        *("key", "name", "kind", "owner", "state", "created_at", "expires_at"),
        *("last_used_at", "revoked_at", "scopes", "networks"),
    )
    rows = [
        (
            *(key_line(actor, key).prefix, key.name, key.kind, key.owner_email, key.state),
            *(key.created_at, key.expires_at, key.last_used_at, key.revoked_at),
            *(" ".join(stored(key.scopes)), " ".join(key.networks)),
        )
        for key in listed.rows
    ]
    return csv_response("keys", header, rows, notes=notes_of(listed))
