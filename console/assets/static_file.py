"""A static file in memory, uncompressed and compressed."""

import gzip
import mimetypes
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from django.conf import settings

# Hex digits of the SHA-256 in a file's URL. 64 bits are enough to tell versions of a file apart.
URL_DIGEST_CHARS: Final = 16


@dataclass(frozen=True, slots=True)
class StaticFile:
    content_type: str
    content: bytes = field(repr=False)
    compressed: bytes | None = field(repr=False)  # with gzip; None: not smaller than `content`


def build_static_file(name: str, content: bytes) -> StaticFile:
    """Return the file. The extension of `name` determines the content type."""
    compressed = gzip.compress(content, mtime=0)  # the same bytes in every process
    content_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    if content_type.startswith("text/"):
        content_type += "; charset=utf-8"
    is_smaller = len(compressed) < len(content)
    return StaticFile(content_type, content, compressed if is_smaller else None)


def version_of(folder: Path) -> int:
    """Return a number that changes with the folder's files, as the key of caches.

    Outside of `make dev`, it is always 0, so cached files are never read again.
    """
    if not settings.RELOAD:
        return 0
    return max(path.stat().st_mtime_ns for path in (folder, *folder.iterdir()))
