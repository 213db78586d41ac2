"""Pages with one list: a filter form, rows in pages, and a CSV file of all filtered rows.

A section declares its list once, and its view renders it:

    _TEAMS = ListPage(
        template="console/teams/list.html",
        fragment="console/teams/_list.html",
        query=_query,
        form=TeamFilterForm,
        csv=CsvFile("teams", {"name": lambda team: team.name}),
    )

    @require_GET
    @member_required
    @permission_required(Permission.READ_TEAMS)
    def teams(request: HttpRequest, member: CurrentMember) -> HttpResponse:
        return _TEAMS.render(request, member)
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic, TypeVar

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from console.layout.htmx import render_page
from console.layout.lists.csv_response import (
    CsvRows,
    collect_rows,
    csv_response,
    format_csv_error,
    notes_of,
)
from console.layout.lists.pagination import page_links, wants_csv
from console.layout.lists.sorting import SortOrders, list_headings, read_sorting
from console.sign_in.current_member import CurrentMember
from console.texts.error_messages import translate_error
from tenants.base.errors import InvalidValue
from tenants.base.pagination import MAX_PAGE, Page
from tenants.compliance.exports.rows import Value
from tenants.security.authorization.actor import Actor

_Row = TypeVar("_Row")


@dataclass(frozen=True, slots=True)
class ListQuery:
    """One page of a list, as the URL requests it."""

    request: HttpRequest
    viewer: CurrentMember | None  # None: an operator
    filters: Mapping[str, Any]  # the form's values, without those of invalid fields
    sorting: Any  # a TableSorting with one of the list's orders; None: the list cannot be sorted
    limit: int  # maximum number of rows
    cursor: str | None  # None: the first page
    now: datetime

    @property
    def member(self) -> CurrentMember:
        """The viewer, who must not be an operator."""
        assert self.viewer is not None
        return self.viewer

    @property
    def actor(self) -> Actor:
        return self.member.actor


@dataclass(frozen=True, slots=True)
class CsvFile(Generic[_Row]):
    name: str  # without its extension
    columns: Mapping[str, Callable[[Any], Value]]  # by the column's name in the header
    # Splits a row of the list into several rows of the file, which `columns` then get. None: each
    # row of the list is one row of the file.
    split: Callable[[_Row], Iterable[Any]] | None = None
    # More lines after the rows, besides the note about rows that were left out.
    notes: Callable[["ListQuery", CsvRows[_Row]], list[str]] | None = None
    # Maximum number of rows of one query for the file; None: MAX_PAGE.
    query_rows: int | None = None

    def file_rows(self, list_row: _Row) -> list[list[Value]]:
        """Return the rows of the file for one row of the list, each with a value per column."""
        rows = [list_row] if self.split is None else self.split(list_row)
        return [[read_value(row) for read_value in self.columns.values()] for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage(Generic[_Row]):
    """A page with a list.

    Its templates get `rows` and `page_links`. If there is a form, they also get `form` and
    `is_filtered`; if there are orders, `headings`; after an error, `error`. Operators' pages call
    `file` and `page_context` without a member, and render the page themselves.
    """

    template: str
    query: Callable[[ListQuery], Page[_Row]]  # raises InvalidValue for an invalid cursor
    fragment: str | None = None  # the template that htmx requests; None: there is none
    page_rows: int = 25  # maximum number of rows of a page
    form: type[forms.Form] | None = None  # the filter; None: the list cannot be filtered
    orders: SortOrders[Any] | None = None  # None: the list cannot be sorted
    csv: CsvFile[_Row] | None = None  # None: the list has no CSV file
    # More values for the templates. Called after `query`, with its page, or with an empty Page
    # after an error.
    context: Callable[[ListQuery, Any], Mapping[str, Any]] | None = None
    # True: after an invalid filter or cursor, the page shows an error and no rows. False: an
    # invalid cursor raises InvalidValue. Invalid filters are ignored, because the link may come
    # from an older release.
    shows_errors: bool = False
    # True: a page with invalid filters ignores them, but its status is 400.
    rejects_invalid_filters: bool = False

    def render(self, request: HttpRequest, member: CurrentMember) -> HttpResponse:
        """Return the page, its fragment, or its file. Raises InvalidValue."""
        if self.csv is not None and wants_csv(request):
            return self.file(request, member)
        context = self.page_context(request, member)
        is_rejected = self.rejects_invalid_filters and bool(context["form"].errors)
        status = 400 if "error" in context or is_rejected else 200
        return render_page(
            request, member, self.template, context, part=self.fragment, status=status
        )

    def file(self, request: HttpRequest, viewer: CurrentMember | None) -> HttpResponse:
        """Return all filtered rows as CSV, or the errors of the filters. Raises InvalidValue."""
        assert self.csv is not None
        form = self._bound_form(request)
        if form is not None and form.errors:
            return format_csv_error(form)
        query = self._read_query(request, viewer, form)
        limit = self.csv.query_rows or MAX_PAGE
        rows = collect_rows(lambda cursor: self.query(replace(query, limit=limit, cursor=cursor)))
        file_rows = [file_row for row in rows.rows for file_row in self.csv.file_rows(row)]
        header = list(self.csv.columns)
        notes = notes_of(rows)
        if self.csv.notes is not None:
            notes += self.csv.notes(query, rows)
        return csv_response(self.csv.name, header, file_rows, notes=notes)

    def page_context(self, request: HttpRequest, viewer: CurrentMember | None) -> dict[str, Any]:
        """Return the values for the page's templates. Raises InvalidValue."""
        form = self._bound_form(request)
        query = self._read_query(request, viewer, form)
        page, errors = self._find_page(query, form)
        context: dict[str, Any] = {
            "rows": page.rows,
            "page_links": page_links(request, page, has_file=self.csv is not None),
        }
        if form is not None:
            context["form"] = form
            context["is_filtered"] = any(request.GET.get(name) for name in form.fields)
        if self.orders is not None:
            context["headings"] = list_headings(request, query.sorting, self.orders.titles)
        if self.context is not None:
            context |= self.context(query, page)
        return context | errors

    def _bound_form(self, request: HttpRequest) -> forms.Form | None:
        return None if self.form is None else self.form(request.GET)

    def _read_query(
        self, request: HttpRequest, viewer: CurrentMember | None, form: forms.Form | None
    ) -> ListQuery:
        if form is not None:
            form.full_clean()  # sets `cleaned_data`
        return ListQuery(
            request=request,
            viewer=viewer,
            filters={} if form is None else form.cleaned_data,
            sorting=None if self.orders is None else read_sorting(request, self.orders.default),
            limit=self.page_rows,
            cursor=request.GET.get("cursor") or None,
            now=timezone.now(),
        )

    def _find_page(
        self, query: ListQuery, form: forms.Form | None
    ) -> tuple[Page[_Row], dict[str, str]]:
        """Return a page of rows, and the error for the template ({}: none).

        After an error, the page is empty. Raises InvalidValue if not `shows_errors`.
        """
        try:
            if self.shows_errors and form is not None and form.errors:
                raise InvalidValue("filter", "This filter is not valid.")
            return self.query(query), {}
        except InvalidValue as error:
            if not self.shows_errors:
                raise
            return Page([], None), {"error": translate_error(error)}
