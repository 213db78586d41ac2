"""Static files of the operators' pages: unfold's stylesheet and our own files, under one digest."""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

import unfold
from django.urls import reverse
from unfold.settings import get_config

from console.assets.static_file import StaticFile, static_file, version_of

_UNFOLD: Final = Path(unfold.__file__).parent / "static" / "unfold"
_OURS: Final = Path(__file__).parents[1] / "static" / "operators"
# Without unfold's scripts: they evaluate strings, which the content security policy must forbid
# (ADR 0072). Without its font, 340 KB that a page would load before it renders properly.
_OF_UNFOLD: Final = ("css/styles.css",)


def url_of(name: str) -> str:
    """Return the URL of a file.

    Raises KeyError for a missing file, so that no page has a dead link.
    """
    version = version_of(_OURS)
    assert _contents_by_name(version)[name]
    return f"{reverse('operators:index')}assets/{_digest_of_files(version)}/{name}"


def operator_files() -> Mapping[str, StaticFile]:
    """Return the files by path. Call it only if the operators' pages are on."""
    return _read_files(version_of(_OURS))


@lru_cache(maxsize=1)
def _read_files(version: int) -> Mapping[str, StaticFile]:
    return {
        url_of(name): static_file(name, content)
        for name, content in _contents_by_name(version).items()
    }


@lru_cache(maxsize=1)
def _contents_by_name(version: int) -> Mapping[str, bytes]:
    unfold_files = {name: (_UNFOLD / name).read_bytes() for name in _OF_UNFOLD}
    own_files = {path.name: path.read_bytes() for path in sorted(_OURS.iterdir())}
    return {**unfold_files, **own_files, "colors.css": _color_css().encode()}


@lru_cache(maxsize=1)
def _digest_of_files(version: int) -> str:
    parts = (
        name.encode() + content for name, content in sorted(_contents_by_name(version).items())
    )
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def _color_css() -> str:
    """Return unfold's palette and the system font as a stylesheet.

    Unfold writes its palette into each page. The file avoids inline styles.
    """
    lines = [
        f"  --color-{name}-{weight}: {value};"
        for name, weights in get_config()["COLORS"].items()
        for weight, value in weights.items()
    ]
    font = "  --font-sans: system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif;"
    return "\n".join([":root {", font, *lines, "}", ""])
