"""The order of a list, as its address says it: `?sort=name`, and `?sort=-name` for the other way
round. A bad one is the list's own: an old link still shows something."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from django.http import HttpRequest
from django.utils.functional import Promise

_Order = TypeVar("_Order", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class TableSorting(Generic[_Order]):
    order: _Order
    is_descending: bool


@dataclass(frozen=True, slots=True)
class SortableHeading:
    """A column's."""

    title: str
    url: str  # of the list sorted by it, the other way round where it is already
    sorted: str  # as aria-sort says it; "": the list is not sorted by it


def read_sorting(request: HttpRequest, default: TableSorting[_Order]) -> TableSorting[_Order]:
    text = request.GET.get("sort", "")
    try:
        order = type(default.order)(text.removeprefix("-"))
    except ValueError:
        return default
    return TableSorting(order, text.startswith("-"))


def headings(
    request: HttpRequest, sorting: TableSorting[_Order], titles: Mapping[_Order, str | Promise]
) -> dict[str, SortableHeading]:
    """By the order's value."""
    found = {}
    for order, title in titles.items():
        is_sorted, down = order is sorting.order, sorting.is_descending
        url = with_query(request, sort=f"-{order}" if is_sorted and not down else str(order))
        way = ("descending" if down else "ascending") if is_sorted else ""
        found[order.value] = SortableHeading(str(title), url, way)
    return found


def with_query(request: HttpRequest, **values: str | None) -> str:
    """This page with other values in its query; None takes one away, and the place goes."""
    query = request.GET.copy()
    query.pop("cursor", None)
    for name, value in values.items():
        query.pop(name, None)
        if value is not None:
            query[name] = value
    return f"{request.path}?{query.urlencode()}" if query else request.path
