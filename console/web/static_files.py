"""Static files, served from memory before a request reaches Django. Browsers cache them for a year.

Serving them needs no thread and no request slot, so a slow client does not delay others. Each file
is compressed once, for clients that accept gzip.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from django.conf import settings

from caret.foundation.web.body_limit import Application, Receive, Send
from console.assets.console_files import read_console_files
from console.assets.operator_files import read_operator_files
from console.assets.static_file import StaticFile

# `gzip`, unless its weight is 0.
_ACCEPTS_GZIP: Final = re.compile(rb"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))", re.IGNORECASE)
# Small compared with a connection's send buffer, so that only little waits in memory for a slow
# client.
_CHUNK_BYTES: Final = 16 * 1024
_HEADERS: Final = [
    # The path contains a digest of the content, so a changed file has another path.
    (b"cache-control", b"public, max-age=31536000, immutable"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


Files: TypeAlias = Mapping[str, StaticFile]  # by path


def list_static_files() -> Files:
    """Return the files of the console, and of the operators' pages if the installation has them."""
    files = read_console_files()
    return files if settings.OPERATORS_PATH is None else {**files, **read_operator_files()}


class StaticFiles:
    """ASGI middleware: answers GET and HEAD of known paths, passes on everything else."""

    def __init__(self, application: Application, load_files: Callable[[], Files]) -> None:
        """Store `load_files`, which is called for each request and must cache its result."""
        self._application = application
        self._load_files = load_files

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        file = self._find_file(scope) if scope["type"] == "http" else None
        if file is None:
            await self._application(scope, receive, send)
        else:
            await _send_file(file, scope, send)

    def _find_file(self, scope: dict[str, Any]) -> StaticFile | None:
        if scope["method"] not in ("GET", "HEAD"):
            return None
        return self._load_files().get(scope["path"])


async def _send_file(file: StaticFile, scope: dict[str, Any], send: Send) -> None:
    headers = [*_HEADERS, (b"content-type", file.content_type.encode())]
    content = file.content
    if file.compressed is not None:
        headers.append((b"vary", b"Accept-Encoding"))
        accepted = b",".join(
            value for name, value in scope["headers"] if name == b"accept-encoding"
        )
        if _ACCEPTS_GZIP.search(accepted):
            headers.append((b"content-encoding", b"gzip"))
            content = file.compressed
    headers.append((b"content-length", str(len(content)).encode()))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if scope["method"] == "HEAD":
        await send({"type": "http.response.body", "body": b""})
        return
    for start in range(0, len(content), _CHUNK_BYTES):
        part = content[start : start + _CHUNK_BYTES]
        has_more = start + _CHUNK_BYTES < len(content)
        await send({"type": "http.response.body", "body": part, "more_body": has_more})
        await asyncio.sleep(0)  # let other connections run between two chunks
