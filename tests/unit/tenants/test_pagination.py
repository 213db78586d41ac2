"""Cursors and pages of lists."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.base.errors import InvalidValue
from tenants.base.pagination import (
    PagePosition,
    build_page,
    decode_cursor,
    encode_cursor,
    map_page,
    slice_page,
)

AT = datetime(2026, 11, 21, 12, 30, 15, 123_456, tzinfo=UTC)
times = st.datetimes(timezones=st.just(UTC))


@given(times, st.uuids())
def test_an_encoded_cursor_can_be_decoded(at: datetime, row: UUID) -> None:
    assert decode_cursor(encode_cursor(PagePosition(at, row))) == PagePosition(at, row)


def test_without_a_cursor_the_first_page_is_read() -> None:
    assert decode_cursor(None) is None


@given(st.text(max_size=64))
def test_the_error_for_an_invalid_cursor_names_the_field(text: str) -> None:
    with pytest.raises(InvalidValue) as rejected:
        decode_cursor(f"{text}!")

    assert rejected.value.field == "cursor"


@pytest.mark.parametrize(
    "text", ["", "é", "AAAA", "f" + "_" * 31, "A" * 31, "A" * 36, "A" * 32 + "!"]
)
def test_a_malformed_cursor_is_rejected(text: str) -> None:
    with pytest.raises(InvalidValue):
        decode_cursor(text)


def test_the_cursor_to_the_next_page_is_the_position_of_the_last_row() -> None:
    page = build_page([3, 2, 1], limit=2, get_position=lambda row: PagePosition(AT, UUID(int=row)))

    assert (page.rows, decode_cursor(page.next_cursor)) == ([3, 2], PagePosition(AT, UUID(int=2)))


def test_the_last_page_has_no_cursor() -> None:
    page = build_page([3, 2], limit=2, get_position=lambda row: PagePosition(AT, UUID(int=row)))

    assert (page.rows, page.next_cursor) == ([3, 2], None)


def test_a_mapped_page_keeps_its_cursor() -> None:
    page = build_page([3, 2, 1], limit=2, get_position=lambda row: PagePosition(AT, UUID(int=row)))

    assert map_page(page, str).rows == ["3", "2"]
    assert map_page(page, str).next_cursor == page.next_cursor


def test_rows_in_memory_are_sliced_into_pages() -> None:
    rows, cursor = [], None
    for _ in range(3):
        page = slice_page("abcde", limit=2, cursor=cursor)
        rows.append(page.rows)
        cursor = page.next_cursor

    assert rows == [["a", "b"], ["c", "d"], ["e"]]
    assert cursor is None


@pytest.mark.parametrize("cursor", ["-1", "6", "x", "9" * 5_000])
def test_an_invalid_cursor_of_rows_in_memory_is_rejected(cursor: str) -> None:
    with pytest.raises(InvalidValue):
        slice_page("abcde", limit=2, cursor=cursor)
