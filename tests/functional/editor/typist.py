"""Somebody types in a file of which the demonstration model knows how it goes on."""

from typing import Any, Final

from tests.functional.editor.developer import Developer
from tests.stack.language_server import LanguageServer, OpenBuffer

# The demonstration model has something to say here.
LINES: Final = "import os\n\n\nclass Reader:\n    def __init__(self, path, mode):\n        "


async def suggested(buffer: OpenBuffer, text: str) -> dict[str, Any]:
    """The first suggestion while `text` is typed, a request behind each key."""
    for character in text:
        buffer.types(character)
        items = await buffer.asks()
        if items:
            return items[0]
    raise AssertionError("nothing was suggested")


def begin(server: LanguageServer, ada: Developer, path: str = "reader.py") -> OpenBuffer:
    return OpenBuffer.opened(server, ada.file(path, LINES), LINES)
