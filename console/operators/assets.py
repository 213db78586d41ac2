"""Style and scripts of the operators' pages: unfold's and ours, under one digest."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Final

import unfold
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from unfold.settings import get_config

from console.kept_file import KeptFile, kept_file

_UNFOLD: Final = Path(unfold.__file__).parent / "static" / "unfold"
_OURS: Final = Path(__file__).parents[1] / "static" / "operators"
# None of unfold's scripts: they evaluate texts, which would cost the policy its point (ADR 72).
# Nor its typeface, of which a page would fetch 340 KB before it looks as it is meant to.
_OF_UNFOLD: Final = ("css/styles.css",)


def url_of(name: str) -> str:
    assert name in _assets(), name  # a page with a dead link fails
    return reverse("operators:asset", args=[_digest(), name])


def serve(request: HttpRequest, digest: str, name: str) -> HttpResponse:
    file = _assets().get(name)
    if file is None or digest != _digest():
        raise Http404
    return file.answer(request)


@cache
def _assets() -> dict[str, KeptFile]:
    theirs = {name: (_UNFOLD / name).read_bytes() for name in _OF_UNFOLD}
    ours = {path.name: path.read_bytes() for path in sorted(_OURS.iterdir())}
    contents = {**theirs, **ours, "colors.css": _colors().encode()}
    return {name: kept_file(name, content) for name, content in contents.items()}


@cache
def _digest() -> str:
    named = (name.encode() + file.content for name, file in sorted(_assets().items()))
    return hashlib.sha256(b"".join(named)).hexdigest()[:16]


def _colors() -> str:
    """Unfold writes its palette into each page; here it is a file, so that no page has inline
    style. And the system's typeface, as the console has it."""
    lines = [
        f"  --color-{name}-{weight}: {value};"
        for name, weights in get_config()["COLORS"].items()
        for weight, value in weights.items()
    ]
    font = "  --font-sans: system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif;"
    return "\n".join([":root {", font, *lines, "}", ""])
