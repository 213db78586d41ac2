"""Downloads of files that are written to a temporary file first.

A small file stays in memory. A larger one is on disk, without a name. It is sent in chunks, and
deleted when the response is closed.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from tempfile import SpooledTemporaryFile
from typing import IO, Final

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse

MAX_MEMORY_BYTES: Final = 4 << 20  # larger files are on disk
_CHUNK_BYTES: Final = 1 << 16


def temp_file_response(
    request: HttpRequest, write: Callable[[IO[bytes]], object], *, name: str, content_type: str
) -> StreamingHttpResponse:
    """Return a download of the file whose content `write` produces. The response closes the file.

    `name` is the file name with its extension. Raises the errors of `write`, and OSError if the
    disk is full.
    """
    file: IO[bytes] = SpooledTemporaryFile(max_size=MAX_MEMORY_BYTES)  # noqa: SIM115  # response closes
    try:
        write(file)
        num_bytes = file.tell()
        file.seek(0)
    except BaseException:
        file.close()
        raise
    response = _stream_file(request, file)
    response["Content-Type"] = content_type
    response["Content-Length"] = str(num_bytes)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _stream_file(request: HttpRequest, file: IO[bytes]) -> StreamingHttpResponse:
    """Return a response with an async iterator for ASGI, and with a sync one for WSGI.

    Django would read an iterator of the other kind completely before it sends anything.
    """
    if isinstance(request, ASGIRequest):
        return StreamingHttpResponse(_AsyncFileChunks(file))
    return StreamingHttpResponse(_FileChunks(file))


class _OpenFile:
    """The file of a response.

    Django calls `close` when it closes the response, even if the client leaves before the first
    chunk.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def close(self) -> None:
        self._file.close()


class _FileChunks(_OpenFile):
    def __iter__(self) -> Iterator[bytes]:
        try:
            while chunk := self._file.read(_CHUNK_BYTES):
                yield chunk
        finally:
            self.close()  # not every WSGI server closes the response


class _AsyncFileChunks(_OpenFile):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while chunk := await sync_to_async(self._file.read)(_CHUNK_BYTES):
                yield chunk
        finally:
            self.close()  # if the client leaves, the task is cancelled at the `await`
