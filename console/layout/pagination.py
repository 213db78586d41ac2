"""Long lists: filters and the place in the list live in the address, so that it can be sent on."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from tenants.base.pagination import Page


@dataclass(frozen=True, slots=True)
class PageLinks:
    """From one page of a list to the others."""

    older_url: str  # "": this is the last one
    newest_url: str  # "": this is the first one
    file_url: str  # of all of it, as the filter has it; "": there is none


def page_links(request: HttpRequest, page: Page[Any], *, has_file: bool = False) -> PageLinks:
    """The view reads `cursor` from the query, and asks `wants_file` where it has one."""
    rest = {name: value for name, value in request.GET.items() if name != "cursor" and value}
    newest = f"{request.path}?{urlencode(rest)}" if rest else request.path
    older = ""
    if page.next_cursor is not None:
        older = f"{request.path}?{urlencode({**rest, 'cursor': page.next_cursor})}"
    file = f"{request.path}?{urlencode({**rest, 'as': 'csv'})}" if has_file and page.rows else ""
    return PageLinks(older, newest if request.GET.get("cursor") else "", file)


def wants_csv(request: HttpRequest) -> bool:
    return request.GET.get("as") == "csv"


def page_url(name: str, **query: str) -> str:
    """A console page's, with what is asked of it; empty values are left out."""
    asked = urlencode({key: value for key, value in query.items() if value})
    return f"{reverse(f'console:{name}')}?{asked}" if asked else reverse(f"console:{name}")
