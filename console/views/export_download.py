"""Download of an export's file by a signed URL, which needs neither a session nor an API key.

The file is stored in pieces. They are read one at a time, each with a short database access. A
download occupies one slot of its tenant, and the memory of one piece. After MAX_S, no further piece
is read, and the connection is closed. If a client stops reading, the web server disconnects it
earlier (`send_timeout_s` in caret.foundation.web.server_limits).
"""

import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from time import monotonic
from typing import Final
from uuid import uuid4

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db import connection
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

from caret.foundation.ids import TenantId
from console.api.problems import Problem, ProblemRaised, build_problem, problem_response
from console.api.rate_limit import count_request
from console.sign_in.current_member import client_address
from tenants.base.errors import NotFound
from tenants.compliance.exports.jobs.download import Download, open_download, require_valid_link

MAX_S: Final = 900.0  # maximum duration of one download
MAX_AT_ONCE: Final = 2  # downloads of one tenant in this process
_BUSY: Final = Problem(
    429,
    "too_many_requests",
    "Your tenant is already downloading two files. Try again in a moment.",  # two: MAX_AT_ONCE
    retry_after_s=30,
)


class _ClientTooSlow(Exception):
    """A download took longer than MAX_S.

    The exception closes the connection. The client notices that bytes are missing, because the
    response has a Content-Length.
    """


class _DownloadSlots:
    """Limits how many downloads of each tenant run at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = Counter[TenantId]()

    def acquire_slot(self, tenant_id: TenantId) -> bool:
        """Occupy a slot. Return False if all slots of the tenant are occupied."""
        with self._lock:
            if self._counts[tenant_id] >= MAX_AT_ONCE:
                return False
            self._counts[tenant_id] += 1
        return True

    def release_slot(self, tenant_id: TenantId) -> None:
        with self._lock:
            self._counts[tenant_id] -= 1
            if not self._counts[tenant_id]:
                del self._counts[tenant_id]


download_slots: Final = _DownloadSlots()


@require_GET
def export_file(request: HttpRequest, token: str) -> HttpResponseBase:
    try:
        return _start_download(request, token)
    except NotFound as error:
        return _render_problem(build_problem(error))
    except ProblemRaised as error:
        return _render_problem(error.problem)


def _start_download(request: HttpRequest, token: str) -> StreamingHttpResponse:
    """Start the download. Raises NotFound, ProblemRaised.

    The slot is acquired before the download is opened. Opening writes an audit entry, and there
    must be no entry for a file that is not sent.
    """
    now = timezone.now()
    link = require_valid_link(token=token, now=now)
    count_request(f"export-file:{link.tenant_id}")
    if not download_slots.acquire_slot(link.tenant_id):
        raise ProblemRaised(_BUSY)
    try:
        download = open_download(
            link=link, address=client_address(request), request_id=str(uuid4()), now=now
        )
        return _stream_download(request, download)
    except BaseException:
        download_slots.release_slot(link.tenant_id)
        raise


def _stream_download(request: HttpRequest, download: Download) -> StreamingHttpResponse:
    body = _AsyncBody(download) if isinstance(request, ASGIRequest) else _SyncBody(download)
    response = StreamingHttpResponse(body, content_type="application/octet-stream")
    response["Content-Length"] = str(download.num_bytes)
    response["Content-Disposition"] = f'attachment; filename="{download.name}"'
    return response


def _render_problem(problem: Problem) -> HttpResponseBase:
    response = problem_response(problem)
    # Without this mark, Django logs the requested URL, which may be a valid signed URL.
    vars(response)["_has_been_logged"] = True
    return response


class _DownloadBody:
    """The pieces of a file, as the body of a response.

    Django calls `close` when it closes the response, even if the client leaves before the first
    piece.
    """

    def __init__(self, download: Download) -> None:
        self._pieces = download.read_pieces()
        self._tenant_id = download.tenant_id
        self._deadline_s = monotonic() + MAX_S
        self._is_open = True  # the download still occupies its slot

    def close(self) -> None:
        """Release the slot of the download, once."""
        if self._is_open:
            self._is_open = False
            download_slots.release_slot(self._tenant_id)

    def _read_next(self) -> bytes | None:
        """Return the next piece; None after the last. Raises _ClientTooSlow.

        Closes the database connection, because a slow client may request the next piece only
        minutes later.
        """
        if monotonic() > self._deadline_s:
            raise _ClientTooSlow
        try:
            return next(self._pieces, None)
        finally:
            # A transaction around the download, as in a test, needs the connection until its end.
            if not connection.in_atomic_block:
                connection.close()


class _SyncBody(_DownloadBody):
    def __iter__(self) -> Iterator[bytes]:
        while (piece := self._read_next()) is not None:
            yield piece


class _AsyncBody(_DownloadBody):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while (piece := await sync_to_async(self._read_next)()) is not None:
                yield piece
        finally:
            self.close()  # also if the client leaves, which cancels the task
