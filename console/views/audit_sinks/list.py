"""The list of audit sinks with their states, and the page that creates a sink.

The secret of a webhook is shown only once, after the sink is created.
"""

from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods

from console.layout.htmx import render_page
from console.layout.lists.list_page import CsvFile, ListPage, ListQuery
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import translate_error
from console.views.audit_sinks.presenters import SinkRow, row_of
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.pagination import Page, map_page
from tenants.base.permissions import Permission
from tenants.compliance.audit_sinks.operations import (
    MAX_NAME_CHARS,
    CreatedSink,
    NewSink,
    create_sink,
)
from tenants.compliance.audit_sinks.queries import list_sinks

_NEW_PAGE: Final = "console/audit_sinks/create.html"


def _find_sinks(query: ListQuery) -> Page[SinkRow]:
    page = list_sinks(actor=query.actor, limit=query.limit, cursor=query.cursor)
    return map_page(page, row_of)


_SINKS: Final = ListPage(
    template="console/audit_sinks/list.html",
    query=_find_sinks,
    page_rows=50,
    context=lambda query, _page: {
        "can_write": query.actor.has_permission(Permission.WRITE_AUDIT_SINKS)
    },
    # As on the page, `origin` omits the parts of the sink's address that may be secret.
    csv=CsvFile(
        "sinks",
        {
            "name": lambda row: row.sink.name,
            "kind": lambda row: row.sink.kind,
            "origin": lambda row: row.sink.origin,
            "delivered_sequence": lambda row: row.sink.delivered_sequence,
            "waiting": lambda row: row.sink.num_waiting,
            "delivered_at": lambda row: row.sink.delivered_at,
            "failed_since": lambda row: row.sink.failed_since,
            "created_at": lambda row: row.sink.created_at,
        },
    ),
)


@require_GET
@member_required
@permission_required(Permission.READ_AUDIT)
def sinks(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _SINKS.render(request, member)


class SinkForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=MAX_NAME_CHARS)
    address = forms.CharField(
        label=_("Address"),
        max_length=2_000,
        help_text=_("https://siem.example/hook, or syslog+tls://siem.example:6514"),
    )
    from_sequence = forms.IntegerField(
        label=_("From entry"),
        min_value=1,
        max_value=2**53 - 1,  # the largest integer that JavaScript represents exactly
        required=False,
        help_text=_("Number of the first entry to send. Leave empty to send only new entries."),
    )

    def to_sink(self) -> NewSink:
        cleaned: dict[str, Any] = self.cleaned_data
        return NewSink(cleaned["name"], cleaned["address"], cleaned["from_sequence"])


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_AUDIT_SINKS)
def new(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    form = SinkForm(request.POST or None)
    if request.method == "GET":
        return render_page(request, member, _NEW_PAGE, {"form": form})
    created_sink = _create_sink(member, form) if form.is_valid() else None
    if created_sink is None:
        return render_page(request, member, _NEW_PAGE, {"form": form}, status=400)
    context = {"row": row_of(created_sink.sink), "secret": created_sink.secret}
    return render_page(request, member, "console/audit_sinks/created.html", context)


def _create_sink(member: CurrentMember, form: SinkForm) -> CreatedSink | None:
    """Create the sink. Return None, with an error in the form, if the input is invalid."""
    try:
        return create_sink(actor=member.actor, new=form.to_sink(), now=timezone.now())
    except InvalidValue as error:
        form.add_error(error.field if error.field in form.fields else None, translate_error(error))
    except Conflict as error:
        form.add_error("name", translate_error(error))
    return None
