"""The pages of an area, as tabs for the component `c-tabs`."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse


@dataclass(frozen=True, slots=True)
class Tab:
    title: str
    url: str
    is_current: bool


def tabs_of(request: HttpRequest, pages: Iterable[tuple[str, str]]) -> list[Tab]:
    """Return a tab for each page. `pages` has the URL name and the title of each."""
    current_name = request.resolver_match.url_name if request.resolver_match is not None else None
    return [
        Tab(title, reverse(f"console:{name}"), is_current=name == current_name)
        for name, title in pages
    ]
