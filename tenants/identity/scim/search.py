"""Search of SCIM resources, in two steps.

A query first narrows the rows in Postgres, and keeps every row that matches the filter. The filter
is then evaluated on the resource of each remaining row. Rows are read in batches, and their
resources are built without the parts that only a response needs.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Generic, TypeVar

from django.db.models import Model, Q, QuerySet
from scim2_models import Resource, SearchRequest, TooManyException
from scim2_models.path import (
    CompareOperator,
    Comparison,
    FilterNode,
    LogicalExpr,
    LogicalOperator,
    ValuePath,
)

from tenants.base.validation.text import is_storable

MAX_RESULTS: Final = 200  # resources per response
# Rows that remain after the query, for filtering or sorting in memory: 0.13 ms each.
MAX_SEARCHED: Final = 5_000
_BATCH: Final = 500  # rows in memory at once
_MAX_START: Final = 10**9  # a larger start index is reduced; Postgres needs less than 64 bits
_Resource = TypeVar("_Resource", bound=Resource[Any])
_Row = TypeVar("_Row", bound=Model)
# Maps an attribute in lower case to a function. For a value, the function returns a query that
# keeps all rows with this value, or None if no query can narrow the rows.
FilterColumns = Mapping[str, Callable[[str], Q | None]]


@dataclass(frozen=True, slots=True)
class SearchResult(Generic[_Resource]):
    resources: list[_Resource]  # one page
    total: int  # resources on all pages
    start: int  # index of the page's first resource among all, from 1


@dataclass(frozen=True, slots=True)
class ResourceBuilders(Generic[_Row, _Resource]):
    row_id: Callable[[_Row], uuid.UUID]
    # Builds resources with all attributes that the filter and the sort order need.
    outline: Callable[[Sequence[_Row]], list[_Resource]]
    # Builds resources for the response.
    complete: Callable[[Sequence[_Row]], list[_Resource]]


def search_rows(
    rows: QuerySet[_Row],
    search: "SearchRequest[Any]",
    columns: FilterColumns,
    builders: ResourceBuilders[_Row, _Resource],
) -> SearchResult[_Resource]:
    """Return the resources that match a search. Raises TooManyException."""
    start = min(search.start_index_0 or 0, _MAX_START)
    count = MAX_RESULTS if search.count is None else min(search.count, MAX_RESULTS)
    if search.filter is None and search.sort_by is None:
        page = list(rows[start : start + count])
        return SearchResult(builders.complete(page), rows.count(), start + 1)
    narrowing = None if search.filter is None else _translate_filter(search.filter.ast, columns)
    candidates = rows if narrowing is None else rows.filter(narrowing)
    matches: dict[str, tuple[_Row, _Resource]] = {}
    for batch in _iterate_batches(candidates):
        for row, resource in zip(batch, builders.outline(batch), strict=True):
            if search.filter is None or search.filter.match(resource):
                matches[str(builders.row_id(row))] = row, resource
    ids = list(matches)
    if search.sort_by is not None:
        sorted_resources = search.sort([resource for _, resource in matches.values()])
        ids = [resource.id for resource in sorted_resources]
    page = [matches[row_id][0] for row_id in ids[start : start + count]]
    return SearchResult(builders.complete(page), len(ids), start + 1)


def make_id_filter(column: str) -> Callable[[str], Q]:
    """Return a function for FilterColumns that compares a UUID column.

    A value that is not a UUID matches no row.
    """

    def narrow(value: str) -> Q:
        try:
            return Q(**{column: uuid.UUID(value)})
        except ValueError:
            return Q(pk__in=[])

    return narrow


def _iterate_batches(rows: QuerySet[_Row]) -> Iterator[list[_Row]]:
    """Yield rows in batches. Raises TooManyException if there are more than MAX_SEARCHED."""
    remaining = rows[: MAX_SEARCHED + 1].iterator(chunk_size=_BATCH)
    num_read = 0
    while batch := list(islice(remaining, _BATCH)):
        num_read += len(batch)
        if num_read > MAX_SEARCHED:
            raise TooManyException
        yield batch


def _translate_filter(node: FilterNode, columns: FilterColumns, within: str = "") -> Q | None:
    """Return a query that keeps every row that matches a filter; None: no query can narrow them.

    `within` is the attribute that contains the filter, with a dot, for example "emails."; "": none.
    """
    match node:
        case Comparison(op=CompareOperator.eq, value=str()):
            return _translate_equality(node, columns, within)
        case ValuePath(sub_attr=None):
            return _translate_filter(node.val_filter, columns, f"{node.attr_path.attr}.")
        case LogicalExpr():
            parts = [_translate_filter(term, columns, within) for term in node.terms]
            return _join_filters(node.op, parts)
        case _:
            return None


def _translate_equality(node: Comparison, columns: FilterColumns, within: str) -> Q | None:
    path = node.attr_path
    name = f"{within}{path.attr}" + (f".{path.sub_attr}" if path.sub_attr else "")
    narrow = columns.get(name.lower())
    if narrow is None or not isinstance(node.value, str) or not is_storable(node.value):
        return None
    return narrow(node.value)


def _join_filters(op: LogicalOperator, parts: Sequence[Q | None]) -> Q | None:
    """Join the queries of the terms of a filter.

    A term may have no query. `and` then uses the other terms alone; for `or`, no query is possible.
    """
    translated = [part for part in parts if part is not None]
    if not translated or (op is LogicalOperator.or_ and len(translated) < len(parts)):
        return None
    condition = translated[0]
    for part in translated[1:]:
        condition = condition | part if op is LogicalOperator.or_ else condition & part
    return condition
