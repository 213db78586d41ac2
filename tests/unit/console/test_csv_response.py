"""CSV files of lists: rows are collected page by page, up to a maximum."""

import pytest

from console.layout.lists import csv_response
from console.layout.lists.csv_response import collect_rows, notes_of
from tenants.base.pagination import MAX_PAGE, Page


def numbered_pages(num_pages: int) -> list[Page[int]]:
    """Return pages with one row each. Only the last page has no cursor for a next page."""
    return [Page([n], str(n + 1) if n + 1 < num_pages else None) for n in range(num_pages)]


@pytest.mark.parametrize(
    ("num_pages", "is_truncated"), [(1, False), (2, False), (3, False), (4, True)]
)
def test_pages_are_collected_up_to_the_maximum_number_of_rows(
    monkeypatch: pytest.MonkeyPatch, num_pages: int, is_truncated: bool
) -> None:
    """Reading stops after three pages: if these pages were full, they would have MAX_ROWS rows."""
    monkeypatch.setattr(csv_response, "MAX_ROWS", 3 * MAX_PAGE)
    pages = numbered_pages(num_pages)

    collected = collect_rows(lambda cursor: pages[int(cursor or 0)])

    assert collected.rows == [*range(min(num_pages, 3))]
    assert collected.is_truncated == is_truncated
    assert len(notes_of(collected)) == (1 if is_truncated else 0)
