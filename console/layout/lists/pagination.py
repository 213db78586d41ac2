"""Pagination of long lists. Filters and cursor are in the URL, so that users can share a link."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from tenants.base.pagination import Page


@dataclass(frozen=True, slots=True)
class PageLinks:
    """Links from a page of a list to the next and the first page, and to the list's file."""

    next_url: str  # "": this is the last page
    first_url: str  # "": this is the first page
    file_url: str  # CSV file of all filtered rows; "": there is no file, or the page has no rows


def page_links(request: HttpRequest, page: Page[Any], *, has_file: bool = False) -> PageLinks:
    """Return the links of a page whose view reads the parameter `cursor`.

    `has_file`: the view also returns the list as CSV (wants_csv).
    """
    filters = {name: value for name, value in request.GET.items() if name != "cursor" and value}
    first = f"{request.path}?{urlencode(filters)}" if filters else request.path
    next_ = ""
    if page.next_cursor is not None:
        next_ = f"{request.path}?{urlencode({**filters, 'cursor': page.next_cursor})}"
    file = f"{request.path}?{urlencode({**filters, 'as': 'csv'})}" if has_file and page.rows else ""
    return PageLinks(next_, first if request.GET.get("cursor") else "", file)


def wants_csv(request: HttpRequest) -> bool:
    return request.GET.get("as") == "csv"


def page_url(name: str, **query: str) -> str:
    """Return the URL of a console page by its URL name. Empty values of the query are left out."""
    query_string = urlencode({parameter: value for parameter, value in query.items() if value})
    return (
        f"{reverse(f'console:{name}')}?{query_string}"
        if query_string
        else reverse(f"console:{name}")
    )
