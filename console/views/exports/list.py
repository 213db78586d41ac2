"""The list of exports, and the page that requests an export.

The list reloads itself while one of its exports is under way.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, time, timedelta
from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods

from console.layout.htmx import render_page
from console.layout.lists.date_range_form import DateRangeForm, DayField
from console.layout.lists.list_page import ListPage, ListQuery
from console.layout.permission_required import permission_required
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import translate_error
from console.views.exports.presenters import MEDIA, ExportRow, row_of
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.pagination import Page, map_page
from tenants.base.permissions import Permission
from tenants.compliance.exports.definitions.definitions import PACK, PACK_MEDIA
from tenants.compliance.exports.jobs.operations import ExportRequest, request_export
from tenants.compliance.exports.jobs.queries import DefinitionView, list_definitions, list_exports
from tenants.compliance.exports.rows import Period

_NEW_PAGE: Final = "console/exports/create.html"


def _find_exports(query: ListQuery) -> Page[ExportRow]:
    page = list_exports(actor=query.actor, limit=query.limit, cursor=query.cursor)
    titles = {
        definition.name: gettext(definition.title)
        for definition in list_definitions(actor=query.actor)
    }
    return map_page(page, lambda export: row_of(export, titles))


_EXPORTS: Final = ListPage(
    template="console/exports/list.html",
    fragment="console/exports/_list.html",
    query=_find_exports,
    shows_errors=True,
    context=lambda _, page: {"reloads": any(row.is_under_way for row in page.rows)},
)


@require_GET
@member_required
@permission_required(Permission.EXPORT)
def exports(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _EXPORTS.render(request, member)


class NewExportForm(DateRangeForm):
    definition = forms.ChoiceField(label=_("Data"))
    format = forms.ChoiceField(
        label=_("Format"),
        choices=[(name, title) for name, title in MEDIA.items() if name != PACK_MEDIA],
        widget=forms.RadioSelect,
    )
    first = DayField(label=_("From"), required=True)
    last = DayField(label=_("To"), required=True)

    def __init__(self, *args: Any, definitions: Iterable[DefinitionView], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["definition"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(definition.name, gettext(definition.title)) for definition in definitions]
        # An evidence pack has only one format, so the field `format` is ignored.
        self.fields["format"].required = self.data.get("definition") != PACK

    def to_request(self) -> ExportRequest:
        """Return the request. Its period is whole UTC days. Raises InvalidValue."""
        cleaned = self.cleaned_data
        definition = cleaned["definition"]
        since = datetime.combine(cleaned["first"], time.min, UTC)
        try:
            until = datetime.combine(cleaned["last"], time.min, UTC) + timedelta(days=1)
        except OverflowError as error:
            raise InvalidValue("last", "This day does not exist.") from error
        media = PACK_MEDIA if definition == PACK else cleaned["format"]
        return ExportRequest(definition, media, Period(since, until))


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.EXPORT)
def new(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    definitions = list_definitions(actor=member.actor)
    if request.method == "GET":
        return _render_form(
            request,
            member,
            NewExportForm(initial=_initial_values(request), definitions=definitions),
        )
    form = NewExportForm(request.POST, definitions=definitions)
    if form.is_valid() and _request_export(request, member, form):
        return redirect("console:exports")
    return _render_form(request, member, form, status=400)


def _request_export(request: HttpRequest, member: CurrentMember, form: NewExportForm) -> bool:
    """Request the export. Return False, with an error in the form, if it is rejected."""
    try:
        request_export(actor=member.actor, export_request=form.to_request(), now=timezone.now())
    except InvalidValue as error:
        # The form calls the bounds of the period `first` and `last`.
        field = {"since": "first", "until": "last"}.get(error.field, error.field)
        form.add_error(field if field in form.fields else None, translate_error(error))
        return False
    except Conflict as error:
        form.add_error(None, translate_error(error))
        return False
    toast(request, gettext("We are creating the export. It stays available for a week."))
    return True


def _render_form(
    request: HttpRequest, member: CurrentMember, form: NewExportForm, status: int = 200
) -> HttpResponse:
    return render_page(request, member, _NEW_PAGE, {"form": form}, status=status)


def _initial_values(request: HttpRequest) -> dict[str, object]:
    """Return the form's initial values. Without a period in the URL, it is the previous month."""
    last = timezone.now().astimezone(UTC).date().replace(day=1) - timedelta(days=1)
    return {
        "definition": request.GET.get("definition", ""),
        "format": "csv",
        "first": request.GET.get("first") or last.replace(day=1),
        "last": request.GET.get("last") or last,
    }
