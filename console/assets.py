"""The console's own files, addressed by their content, so that browsers keep them for ever.

Read once at start: a handful of small files needs neither a collecting step nor a file server.
"""

import hashlib
import mimetypes
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

_FOLDER: Final = Path(__file__).parent / "static"


@dataclass(frozen=True, slots=True)
class Asset:
    name: str
    digest: str  # 16 hex digits of the content's SHA-256
    content: bytes
    content_type: str


def asset_url(name: str) -> str:
    """Raises KeyError for a file that does not exist, so that a page with a dead link fails."""
    return reverse("console:asset", args=[_assets()[name].digest, name])


def serve(request: HttpRequest, digest: str, name: str) -> HttpResponse:
    asset = _assets().get(name)
    if asset is None or asset.digest != digest:
        raise Http404
    return HttpResponse(
        asset.content,
        content_type=asset.content_type,
        headers={"Cache-Control": "public, max-age=31536000, immutable"},
    )


@cache
def _assets() -> dict[str, Asset]:
    return {path.name: _read(path) for path in sorted(_FOLDER.iterdir()) if path.is_file()}


def _read(path: Path) -> Asset:
    content = path.read_bytes()
    return Asset(
        name=path.name,
        digest=hashlib.sha256(content).hexdigest()[:16],
        content=content,
        content_type=mimetypes.guess_type(path.name)[0] or "application/octet-stream",
    )
