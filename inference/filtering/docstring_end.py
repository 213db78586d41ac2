"""Ends a completion in docstring mode at the end of its docstring.

Otherwise the model would continue with the code below the docstring. The docstring begins before
the cursor or with the completion. Only `end_docstring` reads a stream; all else is pure.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from typing import Final

from inference.pools.engine import EngineChunk, EngineStop

_NEARBY_LINES: Final = 40  # before the cursor, searched for the beginning of the docstring
# The mark that begins a docstring -> the mark that ends it.
_ENDS: Final = {'"""': '"""', "'''": "'''", "/**": "*/", "/*": "*/"}
# Group 1 or group 2 is the mark that begins a docstring.
_OPENER: Final = re.compile(r"""\s*(?:[rRuU]?(\"{3}|'{3})|(/\*\*?))""")
_BEFORE_DOCSTRING: Final = re.compile(r":\s*(?:#.*)?$")  # the end of a line that opens a block


class DocstringEnd:
    """Cuts a completion at the end of its docstring."""

    def __init__(self, prefix: str) -> None:
        self._text = ""  # the completion so far
        # The mark that ends the docstring; None: the docstring has not begun.
        self._end_mark = _find_end_mark(prefix)
        self._search_start = 0  # index in the text from which the end is searched
        self.has_ended = False

    def feed(self, text: str) -> str:
        """Return the text up to the end of the docstring; "" after `has_ended`."""
        if self.has_ended:
            return ""
        num_before = len(self._text)
        self._text += text
        if self._end_mark is None and (match := _OPENER.match(self._text)):
            self._end_mark, self._search_start = _ENDS[match[1] or match[2]], match.end()
        if self._end_mark is None:
            return text
        index = self._text.find(self._end_mark, self._search_start)
        if index < 0:
            return text
        self.has_ended = True
        return self._text[num_before : index + len(self._end_mark)]


async def end_docstring(
    chunks: AsyncIterator[EngineChunk], prefix: str
) -> AsyncGenerator[EngineChunk, None]:
    """Yield the chunks up to the end of the docstring, and read no further chunks."""
    docstring = DocstringEnd(prefix)
    async for chunk in chunks:
        text = docstring.feed(chunk.text)
        if docstring.has_ended:
            yield replace(chunk, text=text, stop=chunk.stop or EngineStop.STOP)
            return
        yield replace(chunk, text=text)


def _find_end_mark(prefix: str) -> str | None:
    """Return the mark that ends the docstring around the cursor; None: no docstring is open."""
    lines = prefix.split("\n")[-_NEARBY_LINES:]
    for index in range(len(lines) - 1, -1, -1):
        match = _OPENER.match(lines[index])
        if match is None:
            if any(end in lines[index] for end in _ENDS.values()):
                return None  # the last docstring has ended
            continue
        mark = match[1] or match[2]
        end = _ENDS[mark]
        if end in lines[index][match.end() :] or not _may_open(mark, lines[:index]):
            return None
        return end
    return None


def _may_open(mark: str, lines_above: list[str]) -> bool:
    """Return whether the mark opens a docstring.

    In Python the same quotes may end a docstring. They open one only below a comment, below a line
    that opens a block, or if there is no text above.
    """
    if mark.startswith("/"):
        return True
    above = next((line for line in reversed(lines_above) if line.strip()), "")
    return (
        not above.strip()
        or above.lstrip().startswith("#")
        or _BEFORE_DOCSTRING.search(above) is not None
    )
