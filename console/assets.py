"""The console's own files, addressed by their content, so that browsers keep them for ever.

Read once at start: a handful of small files needs neither a collecting step nor a file server.
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import django_htmx
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from console.kept_file import KeptFile, kept_file

_FOLDER: Final = Path(__file__).parent / "static"
# Files that packages bring.
_PACKAGED: Final = {
    "htmx.js": Path(django_htmx.__file__).parent / "static" / "django_htmx" / "htmx-2.min.js",
}


@dataclass(frozen=True, slots=True)
class Asset:
    digest: str  # 16 hex digits of the content's SHA-256
    file: KeptFile


def asset_url(name: str) -> str:
    """Raises KeyError for a file that does not exist, so that a page with a dead link fails."""
    return reverse("console:asset", args=[_assets()[name].digest, name])


def serve(request: HttpRequest, digest: str, name: str) -> HttpResponse:
    asset = _assets().get(name)
    if asset is None or asset.digest != digest:
        raise Http404
    return asset.file.answer(request)


@cache
def _assets() -> dict[str, Asset]:
    own = {path.name: path for path in sorted(_FOLDER.iterdir()) if path.is_file()}
    return {name: _read(name, path) for name, path in {**own, **_PACKAGED}.items()}


def _read(name: str, path: Path) -> Asset:
    content = path.read_bytes()
    return Asset(hashlib.sha256(content).hexdigest()[:16], kept_file(name, content))
