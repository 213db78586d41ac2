"""A file made for one response is sent in pieces, and deleted with the response."""

from collections.abc import Callable, Iterator
from typing import IO

import pytest
from django.core.signals import request_finished
from django.db import close_old_connections
from django.http import HttpRequest, StreamingHttpResponse
from django.test import AsyncRequestFactory, RequestFactory

from console.downloads.temp_file_response import HELD_BYTES, temp_file_response

DATA = bytes(range(256)) * (HELD_BYTES // 200)  # more than is kept in memory


@pytest.fixture(autouse=True)
def _no_database() -> Iterator[None]:
    """Close responses without touching a connection that a database test left open."""
    request_finished.disconnect(close_old_connections)
    yield
    request_finished.connect(close_old_connections)


class Made:
    """Writes DATA, and keeps the file for inspection."""

    file: IO[bytes]

    def __call__(self, out: IO[bytes]) -> None:
        self.file = out
        out.write(DATA)


def answer(request: HttpRequest, write: Callable[[IO[bytes]], object]) -> StreamingHttpResponse:
    return temp_file_response(request, write, name="ada.zip", content_type="application/zip")


def test_it_is_what_was_written_and_goes_with_the_answer() -> None:
    made = Made()
    response = answer(RequestFactory().get("/"), made)

    assert response["Content-Length"] == str(len(DATA))
    assert response["Content-Type"] == "application/zip"
    assert response["Content-Disposition"] == 'attachment; filename="ada.zip"'
    assert response.getvalue() == DATA
    response.close()
    assert made.file.closed


async def test_a_server_of_the_other_kind_gets_it_in_pieces_too() -> None:
    made = Made()
    response = answer(AsyncRequestFactory().get("/"), made)

    pieces = [piece async for piece in response]

    assert b"".join(pieces) == DATA
    assert max(len(piece) for piece in pieces) < len(DATA) / 10
    assert made.file.closed


@pytest.mark.parametrize("factory", [RequestFactory(), AsyncRequestFactory()])
def test_it_goes_when_the_client_leaves_before_the_first_piece(
    factory: RequestFactory | AsyncRequestFactory,
) -> None:
    made = Made()

    answer(factory.get("/"), made).close()

    assert made.file.closed


def test_it_goes_when_it_cannot_be_written() -> None:
    made = Made()

    def fail(out: IO[bytes]) -> None:
        made(out)
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        answer(RequestFactory().get("/"), fail)

    assert made.file.closed
