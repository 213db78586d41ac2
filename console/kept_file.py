"""A file that browsers keep for ever: its address changes with its content. It is sent packed to
those who take it so; packed once, at the first use."""

import gzip
import mimetypes
import re
from dataclasses import dataclass, field
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers

_TAKES_GZIP: Final = re.compile(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class KeptFile:
    content_type: str
    content: bytes = field(repr=False)
    packed: bytes | None = field(repr=False)  # None: it would be no smaller, as of fonts

    def answer(self, request: HttpRequest) -> HttpResponse:
        headers = {"Cache-Control": "public, max-age=31536000, immutable"}
        if self.packed is None:
            return HttpResponse(self.content, content_type=self.content_type, headers=headers)
        if _TAKES_GZIP.search(request.headers.get("Accept-Encoding", "")):
            headers["Content-Encoding"] = "gzip"
            response = HttpResponse(self.packed, content_type=self.content_type, headers=headers)
        else:
            response = HttpResponse(self.content, content_type=self.content_type, headers=headers)
        patch_vary_headers(response, ["Accept-Encoding"])
        return response


def kept_file(name: str, content: bytes) -> KeptFile:
    packed = gzip.compress(content, mtime=0)
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return KeptFile(kind, content, packed if len(packed) < len(content) else None)
