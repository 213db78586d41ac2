"""An export's file, to whoever shows a link that is good: no session, no key.

Pieces are opened one at a time, each in a moment of the database's: a client that reads slowly
holds one piece in memory and a place among the requests, and both for MAX_S at most.
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
from console.api.rate_limit import take_request
from console.sign_in.current_member import client_address
from tenants.base.errors import NotFound
from tenants.compliance.exports.jobs.download import Download, find_link, open_download

MAX_S: Final = 900.0
MAX_AT_ONCE: Final = 2  # of one tenant, in this process
_BUSY: Final = Problem(
    429,
    "too_many_requests",
    "Your tenant is already downloading two files. Try again in a moment.",
    retry_after_s=30,
)


class _ClientTooSlow(Exception):
    """The client gets less than was promised, and sees it by the length."""


class _RunningDownloads:
    """How many downloads of each tenant are on their way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = Counter[TenantId]()

    def acquire_slot(self, tenant_id: TenantId) -> bool:
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


running: Final = _RunningDownloads()


@require_GET
def export_file(request: HttpRequest, token: str) -> HttpResponseBase:
    try:
        return _begin(request, token)
    except NotFound as error:
        return _refusal(build_problem(error))
    except ProblemRaised as error:
        return _refusal(error.problem)


def _begin(request: HttpRequest, token: str) -> StreamingHttpResponse:
    """In the trail is only what is given: there is a place for it before it is opened. Raises
    NotFound, ProblemRaised."""
    now = timezone.now()
    link = find_link(token=token, now=now)
    take_request(f"export-file:{link.tenant_id}")
    if not running.acquire_slot(link.tenant_id):
        raise ProblemRaised(_BUSY)
    try:
        found = open_download(
            link=link, address=client_address(request), request_id=str(uuid4()), now=now
        )
        return _answer(request, found)
    except BaseException:
        running.release_slot(link.tenant_id)
        raise


def _answer(request: HttpRequest, found: Download) -> StreamingHttpResponse:
    body = _AsyncBody(found) if isinstance(request, ASGIRequest) else _SyncBody(found)
    response = StreamingHttpResponse(body, content_type="application/octet-stream")
    response["Content-Length"] = str(found.num_bytes)
    response["Content-Disposition"] = f'attachment; filename="{found.name}"'
    return response


def _refusal(problem: Problem) -> HttpResponseBase:
    response = problem_response(problem)
    # Django logs the address of what is refused, and a link that is good would stand in the log.
    vars(response)["_has_been_logged"] = True
    return response


class _DownloadBody:
    """Django closes it with the response, also when the client has left before the first piece."""

    def __init__(self, found: Download) -> None:
        self._pieces = found.read_pieces()
        self._tenant_id = found.tenant_id
        self._over_at_s = monotonic() + MAX_S
        self._is_open = True

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            running.release_slot(self._tenant_id)

    def _read_next(self) -> bytes | None:
        """Leaves no connection behind: the next piece may be asked for in minutes. None: it was the
        last. Raises _TooSlow."""
        if monotonic() > self._over_at_s:
            raise _ClientTooSlow
        try:
            return next(self._pieces, None)
        finally:
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
            self.close()  # a client that leaves cancels us here
