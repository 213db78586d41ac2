"""The console's static files. Their URLs contain a digest, so browsers cache them for a year.

Each process reads the few small files once, at their first use. Therefore Django's `collectstatic`
is not needed. With `make dev`, the files are read again when a file in console/static changes.
"""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

import django_htmx
import ninja
from django.conf import settings

from console.assets.static_file import (
    URL_DIGEST_CHARS,
    StaticFile,
    build_static_file,
    version_of,
)

_FOLDER: Final = Path(__file__).parents[1] / "static"
_SWAGGER: Final = Path(ninja.__file__).parent / "static" / "ninja"
# Files of installed packages.
_PACKAGED: Final = {
    "htmx.js": Path(django_htmx.__file__).parent / "static" / "django_htmx" / "htmx-2.min.js",
    "swagger-ui.js": _SWAGGER / "swagger-ui-bundle.js",
    "swagger-ui-init.js": _SWAGGER / "swagger-ui-init.js",
    "swagger-ui.css": _SWAGGER / "swagger-ui.css",
}


def asset_url(name: str) -> str:
    """Return the URL of the file with this name.

    Raises KeyError if there is no such file, so that no page links to a missing file.
    """
    return _urls_by_name(version_of(_FOLDER))[name]


def name_of_document_file(path: str) -> str:
    """Return the asset name of a file of the documentation.

    `path` is relative to platform/docs, such as images/overview.png.
    """
    return f"docs-{path.replace('/', '-')}"


def read_console_files() -> Mapping[str, StaticFile]:
    """Return the files by the path of their URL."""
    return _read_files(version_of(_FOLDER))


# In the functions below, `version` is only the key of the cache: for another version, the files
# are read again.
@lru_cache(maxsize=1)
def _read_files(version: int) -> Mapping[str, StaticFile]:
    urls = _urls_by_name(version)
    return {
        urls[name]: build_static_file(name, content)
        for name, content in _contents_by_name(version).items()
    }


@lru_cache(maxsize=1)
def _urls_by_name(version: int) -> Mapping[str, str]:
    return {
        name: f"/assets/{hashlib.sha256(content).hexdigest()[:URL_DIGEST_CHARS]}/{name}"
        for name, content in _contents_by_name(version).items()
    }


@lru_cache(maxsize=1)
def _contents_by_name(version: int) -> Mapping[str, bytes]:
    own_files = {path.name: path for path in sorted(_FOLDER.iterdir()) if path.is_file()}
    files = {**own_files, **_PACKAGED, **_document_files()}
    return {name: path.read_bytes() for name, path in files.items()}


def _document_files() -> Mapping[str, Path]:
    """Return the images and openapi.json, to which the help pages link.

    Empty if platform/docs is not installed.
    """
    folder: Path = settings.REPOSITORY / "platform" / "docs"
    paths = [*sorted(folder.glob("images/*.png")), *folder.glob("openapi.json")]
    return {name_of_document_file(str(path.relative_to(folder))): path for path in paths}
