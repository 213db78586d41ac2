"""Style, fonts and the one script of the operators' pages: unfold's and ours, under one digest, so
that style sheets find their fonts beside them."""

import hashlib
import mimetypes
from functools import cache
from pathlib import Path
from typing import Final

import unfold
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from unfold.settings import get_config

_UNFOLD: Final = Path(unfold.__file__).parent / "static" / "unfold"
_OURS: Final = Path(__file__).parents[1] / "static" / "operators"
# None of unfold's scripts: they evaluate texts, which would cost the policy its point (ADR 72).
_OF_UNFOLD: Final = ("css/styles.css", "fonts/inter/*.css", "fonts/inter/*.woff2")


def url_of(name: str) -> str:
    assert name in _assets(), name  # a page with a dead link fails
    return reverse("operators:asset", args=[_digest(), name])


def serve(request: HttpRequest, digest: str, name: str) -> HttpResponse:
    content = _assets().get(name)
    if content is None or digest != _digest():
        raise Http404
    return HttpResponse(
        content,
        content_type=mimetypes.guess_type(name)[0] or "application/octet-stream",
        headers={"Cache-Control": "public, max-age=31536000, immutable"},
    )


@cache
def _assets() -> dict[str, bytes]:
    theirs = {
        path.relative_to(_UNFOLD).as_posix(): path.read_bytes()
        for pattern in _OF_UNFOLD
        for path in sorted(_UNFOLD.glob(pattern))
    }
    ours = {path.name: path.read_bytes() for path in sorted(_OURS.iterdir())}
    return {**theirs, **ours, "colors.css": _colors().encode()}


@cache
def _digest() -> str:
    named = (name.encode() + content for name, content in sorted(_assets().items()))
    return hashlib.sha256(b"".join(named)).hexdigest()[:16]


def _colors() -> str:
    """Unfold writes its palette into each page; here it is a file, so that no page has inline
    style."""
    lines = [
        f"  --color-{name}-{weight}: {value};"
        for name, weights in get_config()["COLORS"].items()
        for weight, value in weights.items()
    ]
    return "\n".join([":root {", *lines, "}", ""])
