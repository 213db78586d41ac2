"""The console's own static files, addressed by their content, so that browsers cache them forever.

They are read once at start: a handful of small files needs no collecting step. In `make dev` they
are read again when one of them changes.
"""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

import django_htmx
from django.conf import settings

from console.operator_admin.static_files import operator_files
from console.static_files import StaticFile, static_file, version_of

_FOLDER: Final = Path(__file__).parent / "static"
# Files that packages bring.
_PACKAGED: Final = {
    "htmx.js": Path(django_htmx.__file__).parent / "static" / "django_htmx" / "htmx-2.min.js",
}


def asset_url(name: str) -> str:
    """Raises KeyError for a file that does not exist, so that a page with a dead link fails."""
    return _urls(version_of(_FOLDER))[name]


def static_files() -> Mapping[str, StaticFile]:
    """Return all static files by path, with those of the operators' pages if these are on."""
    own = _files(version_of(_FOLDER))
    return own if settings.OPERATORS_PATH is None else {**own, **operator_files()}


@lru_cache(maxsize=1)
def _files(version: int) -> Mapping[str, StaticFile]:
    urls = _urls(version)
    return {urls[name]: static_file(name, content) for name, content in _contents(version).items()}


@lru_cache(maxsize=1)
def _urls(version: int) -> Mapping[str, str]:
    return {
        name: f"/assets/{hashlib.sha256(content).hexdigest()[:16]}/{name}"
        for name, content in _contents(version).items()
    }


@lru_cache(maxsize=1)
def _contents(version: int) -> Mapping[str, bytes]:
    own = {path.name: path for path in sorted(_FOLDER.iterdir()) if path.is_file()}
    return {name: path.read_bytes() for name, path in {**own, **_PACKAGED}.items()}
