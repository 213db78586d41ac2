"""The console's static files. Their URLs contain a digest, so browsers cache them forever.

The few small files are read once at start, without a collecting step. `make dev` reads them again
when one changes.
"""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

import django_htmx

from console.assets.static_file import StaticFile, static_file, version_of

_FOLDER: Final = Path(__file__).parents[1] / "static"
# Files of installed packages.
_PACKAGED: Final = {
    "htmx.js": Path(django_htmx.__file__).parent / "static" / "django_htmx" / "htmx-2.min.js",
}


def asset_url(name: str) -> str:
    """Return the URL of a file.

    Raises KeyError for a missing file, so that no page has a dead link.
    """
    return _urls_by_name(version_of(_FOLDER))[name]


def console_files() -> Mapping[str, StaticFile]:
    """Return the files by path."""
    return _read_files(version_of(_FOLDER))


@lru_cache(maxsize=1)
def _read_files(version: int) -> Mapping[str, StaticFile]:
    urls = _urls_by_name(version)
    return {
        urls[name]: static_file(name, content)
        for name, content in _contents_by_url(version).items()
    }


@lru_cache(maxsize=1)
def _urls_by_name(version: int) -> Mapping[str, str]:
    return {
        name: f"/assets/{hashlib.sha256(content).hexdigest()[:16]}/{name}"
        for name, content in _contents_by_url(version).items()
    }


@lru_cache(maxsize=1)
def _contents_by_url(version: int) -> Mapping[str, bytes]:
    own = {path.name: path for path in sorted(_FOLDER.iterdir()) if path.is_file()}
    return {name: path.read_bytes() for name, path in {**own, **_PACKAGED}.items()}
