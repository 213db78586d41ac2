"""Long lists: filters and the place in the list live in the address, so that it can be sent on."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from tenants.paging import Page


@dataclass(frozen=True, slots=True)
class Turning:
    """From one page of a list to the others."""

    older_url: str  # "": this is the last one
    newest_url: str  # "": this is the first one


def turning(request: HttpRequest, page: Page[Any]) -> Turning:
    """The view reads `cursor` from the query."""
    rest = {name: value for name, value in request.GET.items() if name != "cursor" and value}
    newest = f"{request.path}?{urlencode(rest)}" if rest else request.path
    older = ""
    if page.next_cursor is not None:
        older = f"{request.path}?{urlencode({**rest, 'cursor': page.next_cursor})}"
    return Turning(older, newest if request.GET.get("cursor") else "")


def address_of(name: str, **query: str) -> str:
    """A console page's, with what is asked of it; empty values are left out."""
    asked = urlencode({key: value for key, value in query.items() if value})
    return f"{reverse(f'console:{name}')}?{asked}" if asked else reverse(f"console:{name}")
