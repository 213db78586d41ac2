"""The list of API keys: the tenant's, or only the user's own."""

from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from caret.contracts.api_key import KeyKind
from console.layout.lists.list_page import CsvFile, ListPage, ListQuery
from console.layout.lists.sorting import SortOrders, TableSorting, with_query
from console.layout.tabs import Tab
from console.sign_in.current_member import CurrentMember, member_required
from console.views.keys.presenters import KIND_NAMES, STATE_NAMES, KeyLine, key_line
from tenants.base.pagination import Page, map_page
from tenants.base.permissions import Permission
from tenants.identity.api_keys.queries import KeyState
from tenants.identity.api_keys.scopes import stored
from tenants.identity.api_keys.search import (
    KeyConcern,
    KeyCounts,
    KeyFilter,
    KeyOrder,
    count_keys,
    find_keys,
)

_PLAYGROUND: Final = "playground"
_ORDERS: Final = SortOrders(
    default=TableSorting(KeyOrder.CREATED, is_descending=True),
    titles={
        KeyOrder.NAME: _("Key"),
        KeyOrder.CREATED: _("Created"),
        KeyOrder.EXPIRES: _("Expires"),
        KeyOrder.LAST_USED: _("Last used"),
    },
)


class KeyFilterForm(forms.Form):
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
    # The parameter of the tabs.
    look = forms.ChoiceField(choices=[(each.value, "") for each in KeyConcern], required=False)


def _find_keys(asked: ListQuery) -> Page[KeyLine]:
    page = find_keys(
        actor=asked.actor,
        wanted=_read_filter(asked),
        limit=asked.limit,
        cursor=asked.cursor,
        now=asked.now,
    )
    return map_page(page, lambda key: key_line(asked.actor, key))


def _read_filter(asked: ListQuery) -> KeyFilter:
    kind, state = asked.filters.get("kind"), asked.filters.get("state")
    return KeyFilter(
        text=asked.filters.get("q", ""),
        kind=KeyKind(kind) if kind and kind != _PLAYGROUND else None,
        state=KeyState(state) if state else None,
        concern=_read_concern(asked),
        is_playground=kind == _PLAYGROUND,
        order=asked.sorting.order,
        is_descending=asked.sorting.is_descending,
    )


def _read_concern(asked: ListQuery) -> KeyConcern | None:
    concern = asked.filters.get("look")
    return KeyConcern(concern) if concern else None


def _more_context(asked: ListQuery, _page: Page[KeyLine]) -> dict[str, Any]:
    concern = _read_concern(asked)
    counts = count_keys(actor=asked.actor, now=asked.now)
    return {
        "concern": concern,
        "counts": counts,
        "tabs": _build_tabs(asked.request, concern, counts),
        "sees_all": asked.actor.has_permission(Permission.READ_KEYS),
        "can_create": asked.actor.has_permission(Permission.CREATE_KEYS),
    }


def _build_tabs(request: HttpRequest, here: KeyConcern | None, counts: KeyCounts) -> list[Tab]:
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


_KEYS: Final = ListPage(
    template="console/keys/keys.html",
    fragment="console/keys/_rows.html",
    query=_find_keys,
    form=KeyFilterForm,
    orders=_ORDERS,
    context=_more_context,
    csv=CsvFile(
        "keys",
        {
            "key": lambda line: line.prefix,
            "name": lambda line: line.key.name,
            "kind": lambda line: line.key.kind,
            "owner": lambda line: line.key.owner_email,
            "state": lambda line: line.key.state,
            "created_at": lambda line: line.key.created_at,
            "expires_at": lambda line: line.key.expires_at,
            "last_used_at": lambda line: line.key.last_used_at,
            "revoked_at": lambda line: line.key.revoked_at,
            "scopes": lambda line: " ".join(stored(line.key.scopes)),
            "networks": lambda line: " ".join(line.key.networks),
        },
    ),
)


@require_GET
@member_required
def keys(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _KEYS.render(request, member)
