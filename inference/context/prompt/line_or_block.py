"""Decides whether a completion in the mode inline is one line or a block.

Usually it is one line, which users can read at a glance. If this line opens a block, the completion
includes the block (see `inference.filtering.truncation`). If only blanks follow the cursor on its
line, the completion is a block in two cases: the text before the cursor on its line opens a block,
or the cursor's line is blank and begins a paragraph. A paragraph begins at the top of a file, and
after a blank line, a line that opens a block, a comment or a decorator.
"""

import re
from typing import Final

from caret.contracts.policy import Mode
from inference.completion.request import CompletionRequest
from inference.context.prompt.block_lines import BlockLines
from inference.context.prompt.cursor_text import line_after, line_before

_COMMENT_OR_DECORATOR: Final = re.compile(r"\s*(?:#|//|/\*|\*|--|<!--|@|\"\"\"|''')")
_END_OF_COMMENT: Final = re.compile(r"(?:\"\"\"|'''|\*/|-->)\s*$")


def is_single_line(request: CompletionRequest) -> bool:
    """Return whether the completion is one line, with its block if the line opens one.

    False for raw prompts, and in all modes except inline.
    """
    if request.is_raw or request.mode is not Mode.INLINE:
        return False
    before = line_before(request.prefix)
    if line_after(request.suffix).strip():
        return True
    lines = BlockLines(request.language, request.path)
    if before.strip():
        return not lines.is_opening(before)
    return not _begins_paragraph(_line_above(request.prefix), lines)


def _line_above(prefix: str) -> str:
    end = prefix.rfind("\n")
    return prefix[prefix.rfind("\n", 0, max(0, end)) + 1 : max(0, end)]


def _begins_paragraph(line_above: str, lines: BlockLines) -> bool:
    return (
        not line_above.strip()
        or lines.is_opening(line_above)
        or _COMMENT_OR_DECORATOR.match(line_above) is not None
        or _END_OF_COMMENT.search(line_above) is not None
    )
