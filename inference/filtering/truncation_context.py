"""Reads from a request what the cutter has to know of the text around the cursor."""

import re
from typing import Final

from caret.contracts.policy import Mode
from inference.completion.request import CompletionRequest
from inference.context.prompt.cursor_text import line_after, line_before
from inference.filtering.truncation import TruncationContext

_TEXT: Final = re.compile(r"\S")


def build_truncation_context(
    request: CompletionRequest, *, is_single_line: bool
) -> TruncationContext:
    before, rest = line_before(request.prefix), line_after(request.suffix)
    is_fresh_line = not before.strip()
    return TruncationContext(
        is_single_line=is_single_line,
        is_fresh_line=is_fresh_line,
        min_indent=_min_indent(request.mode, before, is_fresh_line=is_fresh_line),
        is_ended_by_blank_line=request.mode is Mode.INLINE,
        rest_of_line=rest.strip(),
        next_line=_first_line_of_text(request.suffix, len(rest) + 1),
    )


def _first_line_of_text(text: str, start: int) -> str:
    """Of the lines from `start` on."""
    found = _TEXT.search(text, start)
    if found is None:
        return ""
    start = max(start, text.rfind("\n", 0, found.start()) + 1)
    end = text.find("\n", found.start())
    return text[start : end if end >= 0 else len(text)].rstrip()


def _min_indent(mode: Mode, line_before: str, *, is_fresh_line: bool) -> int | None:
    """On a fresh line the block is where the cursor stands, else it is what this line opens."""
    if mode is Mode.FIM:  # the client has its own idea of where it ends
        return None
    if is_fresh_line:
        return len(line_before)
    return len(line_before) - len(line_before.lstrip()) + 1
