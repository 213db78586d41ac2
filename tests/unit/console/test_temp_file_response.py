"""Files generated for one response: sent in chunks, and deleted with the response."""

from collections.abc import Callable, Iterator
from typing import IO

import pytest
from django.core.signals import request_finished
from django.db import close_old_connections
from django.http import HttpRequest, StreamingHttpResponse
from django.test import AsyncRequestFactory, RequestFactory

from console.downloads.temp_file_response import MAX_MEMORY_BYTES, temp_file_response

DATA = bytes(range(256)) * (MAX_MEMORY_BYTES // 200)  # more bytes than are kept in memory


@pytest.fixture(autouse=True)
def _no_database() -> Iterator[None]:
    """Close responses without touching a connection that a database test left open."""
    request_finished.disconnect(close_old_connections)
    yield
    request_finished.connect(close_old_connections)


class FileWriter:
    """Writes DATA, and keeps the file so that a test can see whether it was deleted."""

    file: IO[bytes]

    def __call__(self, out: IO[bytes]) -> None:
        self.file = out
        out.write(DATA)


def respond(request: HttpRequest, write: Callable[[IO[bytes]], object]) -> StreamingHttpResponse:
    return temp_file_response(request, write, name="ada.zip", content_type="application/zip")


def test_the_response_contains_the_file_and_deletes_it() -> None:
    writer = FileWriter()
    response = respond(RequestFactory().get("/"), writer)

    assert response["Content-Length"] == str(len(DATA))
    assert response["Content-Type"] == "application/zip"
    assert response["Content-Disposition"] == 'attachment; filename="ada.zip"'
    assert response.getvalue() == DATA
    response.close()
    assert writer.file.closed


async def test_an_asynchronous_server_gets_the_file_in_chunks() -> None:
    writer = FileWriter()
    response = respond(AsyncRequestFactory().get("/"), writer)

    chunks = [chunk async for chunk in response]

    assert b"".join(chunks) == DATA
    assert max(len(chunk) for chunk in chunks) < len(DATA) / 10
    assert writer.file.closed


@pytest.mark.parametrize("factory", [RequestFactory(), AsyncRequestFactory()])
def test_the_file_is_deleted_when_the_client_leaves_before_the_first_chunk(
    factory: RequestFactory | AsyncRequestFactory,
) -> None:
    writer = FileWriter()

    respond(factory.get("/"), writer).close()

    assert writer.file.closed


def test_the_file_is_deleted_when_writing_fails() -> None:
    writer = FileWriter()

    def fail(out: IO[bytes]) -> None:
        writer(out)
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        respond(RequestFactory().get("/"), fail)

    assert writer.file.closed
