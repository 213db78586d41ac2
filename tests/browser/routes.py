"""The URL patterns of the console's process, from its URL configuration."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.http.response import HttpResponseBase
from django.urls import URLPattern, URLResolver, get_resolver


@dataclass(frozen=True, slots=True)
class Route:
    pattern: str  # such as keys/<lookup_id>/revoke
    name: str  # of the view, such as revoke-key
    view: Callable[..., HttpResponseBase]

    @property
    def has_arguments(self) -> bool:
        return "<" in self.pattern


def all_routes() -> list[Route]:
    """Return each pattern once, with the first view that answers it."""
    by_pattern: dict[str, Route] = {}
    for route in _routes_of(get_resolver(), ""):
        by_pattern.setdefault(route.pattern, route)
    return list(by_pattern.values())


def _routes_of(resolver: URLResolver, prefix: str) -> Iterator[Route]:
    for entry in resolver.url_patterns:
        pattern = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from _routes_of(entry, pattern)
        elif isinstance(entry, URLPattern):
            yield Route(pattern, entry.name or "", entry.callback)
