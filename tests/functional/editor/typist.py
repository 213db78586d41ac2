"""A typist in a file that the demonstration model can continue."""

from typing import Any, Final

from tests.functional.editor.developer import Developer
from tests.stack.language_server import LanguageServer, OpenBuffer

# The demonstration model has a suggestion here.
LINES: Final = "import os\n\n\nclass Reader:\n    def __init__(self, path, mode):\n        "


async def type_until_suggested(buffer: OpenBuffer, text: str) -> dict[str, Any]:
    """Return the first suggestion while `text` is typed, with a request after each key."""
    for character in text:
        buffer.type_text(character)
        items = await buffer.request_items()
        if items:
            return items[0]
    raise AssertionError("no suggestion appeared")


def open_file(server: LanguageServer, ada: Developer, path: str = "reader.py") -> OpenBuffer:
    return OpenBuffer.opened(server, ada.write_file(path, LINES), LINES)
