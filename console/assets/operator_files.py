"""Static files of the operators' pages. Their URLs contain a digest of all these files together."""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from django.urls import reverse

from console.assets.static_file import (
    URL_DIGEST_CHARS,
    StaticFile,
    build_static_file,
    version_of,
)

_FOLDER: Final = Path(__file__).parents[1] / "static" / "operators"


def url_of(name: str) -> str:
    """Return the URL of the file with this name.

    Raises KeyError if there is no such file, so that no page links to a missing file.
    """
    version = version_of(_FOLDER)
    if name not in _contents_by_name(version):
        raise KeyError(name)
    return f"{reverse('operators:index')}assets/{_digest_of_files(version)}/{name}"


def read_operator_files() -> Mapping[str, StaticFile]:
    """Return the files by the path of their URL.

    Raises NoReverseMatch if the installation has no operators' pages.
    """
    return _read_files(version_of(_FOLDER))


# In the functions below, `version` is only the key of the cache: for another version, the files
# are read again.
@lru_cache(maxsize=1)
def _read_files(version: int) -> Mapping[str, StaticFile]:
    return {
        url_of(name): build_static_file(name, content)
        for name, content in _contents_by_name(version).items()
    }


@lru_cache(maxsize=1)
def _contents_by_name(version: int) -> Mapping[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(_FOLDER.iterdir())}


@lru_cache(maxsize=1)
def _digest_of_files(version: int) -> str:
    parts = (
        name.encode() + content for name, content in sorted(_contents_by_name(version).items())
    )
    return hashlib.sha256(b"".join(parts)).hexdigest()[:URL_DIGEST_CHARS]
