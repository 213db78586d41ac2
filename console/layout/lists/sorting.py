"""Sort order of a list in its URL: `?sort=name`, or `?sort=-name` for descending.

An invalid order falls back to the list's default, so that old links still work.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from django.http import HttpRequest
from django.utils.functional import Promise

_Order = TypeVar("_Order", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class TableSorting(Generic[_Order]):
    """The current sort order of a list."""

    order: _Order
    is_descending: bool


@dataclass(frozen=True, slots=True)
class SortOrders(Generic[_Order]):
    """The orders of a list, with the titles of the columns that they sort by."""

    default: TableSorting[_Order]
    titles: Mapping[_Order, str | Promise]


@dataclass(frozen=True, slots=True)
class SortableHeading:
    """The heading of a sortable column."""

    title: str
    # Sorts the list by this column. If it is already sorted by this column, reverses the order.
    url: str
    sorted: str  # value of aria-sort; "": the list is not sorted by this column


def read_sorting(request: HttpRequest, default: TableSorting[_Order]) -> TableSorting[_Order]:
    """Return the order that the URL names, or `default`."""
    text = request.GET.get("sort", "")
    try:
        order = type(default.order)(text.removeprefix("-"))
    except ValueError:
        return default
    return TableSorting(order, text.startswith("-"))


def list_headings(
    request: HttpRequest, sorting: TableSorting[_Order], titles: Mapping[_Order, str | Promise]
) -> dict[str, SortableHeading]:
    """Return the headings by the value of their order."""
    headings_by_order = {}
    for order, title in titles.items():
        is_sorted, is_descending = order is sorting.order, sorting.is_descending
        is_ascending = is_sorted and not is_descending
        url = with_query(request, sort=f"-{order}" if is_ascending else str(order))
        aria_sort = ""
        if is_sorted:
            aria_sort = "descending" if is_descending else "ascending"
        headings_by_order[order.value] = SortableHeading(str(title), url, aria_sort)
    return headings_by_order


def with_query(request: HttpRequest, **values: str | None) -> str:
    """Return the URL of this page with changed query parameters, and without its cursor.

    The value None removes a parameter.
    """
    query = request.GET.copy()
    query.pop("cursor", None)
    for name, value in values.items():
        query.pop(name, None)
        if value is not None:
            query[name] = value
    return f"{request.path}?{query.urlencode()}" if query else request.path
