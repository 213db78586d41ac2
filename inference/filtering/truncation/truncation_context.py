"""The facts about the text around the cursor that truncation needs."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from caret.contracts.policy import Mode
from inference.completion.request import CompletionRequest
from inference.context.prompt.block_lines import (
    BlockLines,
    find_outside,
    has_block,
    has_flat_body,
    is_end_missing,
    is_last_branch,
    measure_indent,
    measure_statement_indent,
)
from inference.context.prompt.cursor_text import line_after, line_before
from inference.filtering.truncation.brackets import CLOSERS, BracketCounter

# Text further away is not searched for lines that open and end blocks.
_NEARBY_CHARS: Final = 4_000


@dataclass(frozen=True)
class TruncationContext:
    is_single_line: bool
    is_fresh_line: bool  # only white space before the cursor on its line
    # In characters. A line indented less than this leaves the block. None: no line does.
    min_indent: int | None
    is_ended_by_blank_line: bool  # a blank line may end the completion
    rest_of_line: str  # the text after the cursor on its line, stripped
    # The first non-blank line below the cursor's line, with its indentation; "" if there is none.
    next_line: str
    line_before: str  # the text before the cursor on its line
    lines: BlockLines  # recognizes lines of the file's language
    prefix: str
    suffix: str

    @cached_property
    def brackets(self) -> BracketCounter:
        """The brackets around the cursor. They are counted when first needed."""
        return BracketCounter(self.prefix, self.suffix)

    @cached_property
    def min_indent_below(self) -> int | None:
        """The minimum indentation for a completion that begins with a line break; None: none."""
        if self.min_indent is None or self.is_fresh_line:
            return self.min_indent
        if not self._is_head:
            return measure_statement_indent(self.prefix[-_NEARBY_CHARS:])
        # The body of some blocks, such as `namespace` in C++, may be flat: not indented more than
        # the line that opens the block.
        return self.min_indent - 1 if has_flat_body(self.line_before) else self.min_indent

    @cached_property
    def head_indent(self) -> int | None:
        """The indentation of the cursor's line; None: the line opens no block."""
        is_head = not self.is_fresh_line and self._is_head
        return measure_indent(self.line_before) if is_head else None

    @cached_property
    def _is_head(self) -> bool:
        """True if the cursor's line, which has text before the cursor, opens a block."""
        lines, line = self.lines, self.line_before
        # With text after the cursor, as in `f(a, |)`, an open bracket counts as a block, because
        # the completion stays in it.
        return lines.is_unfinished(line) if self.rest_of_line else lines.is_opening(line)

    @property
    def can_continue_below(self) -> bool:
        """True if a single-line completion may begin on the line below the cursor."""
        return not self.is_fresh_line and set(self.rest_of_line) <= set(CLOSERS)

    def has_body(self, indent: int) -> bool:
        """Return whether the next line is the body of a block with this indentation."""
        return bool(self.next_line) and measure_indent(self.next_line) > indent

    def is_next_statement(self, indent: int) -> bool:
        """Return whether a generated line may be the next statement of an outer block.

        `indent` is the line's indentation. False unless one line is requested.
        """
        return (
            self.lines.is_indented  # in other languages, a mark such as a brace ends a block
            and self.head_indent is None  # after a line that opens a block, its body must come
            and self.is_single_line
            # A deeper line below the cursor still belongs to the inner block.
            and measure_indent(self.next_line) <= indent
            and has_block(self.prefix[-_NEARBY_CHARS:], indent)
        )

    def can_have_branch(self, completion: str, line: str) -> bool:
        """Return whether a block can have the branch (such as `else`) that the line begins.

        A block above with the line's indentation must be open. If the branch is a last one such as
        `else`, the text below must not already continue this block with a branch.
        """
        indent = measure_indent(line)
        if not has_block(self.prefix[-_NEARBY_CHARS:] + completion, indent):
            return False
        if not is_last_branch(line):
            return True
        below = find_outside(self._text_below, indent)
        return measure_indent(below) != indent or not self.lines.is_branch(below)

    def is_end_missing(self, completion: str, indent: int) -> bool:
        """Return whether the completion leaves a block open that the text below does not end.

        `indent` is the block's indentation.
        """
        before = self.prefix[-_NEARBY_CHARS:] + completion
        return is_end_missing(before, self._text_below, indent)

    @property
    def _text_below(self) -> str:
        """The text from the end of the cursor's line on."""
        start = len(line_after(self.suffix))
        return self.suffix[start : start + _NEARBY_CHARS]


def build_truncation_context(
    request: CompletionRequest, *, is_single_line: bool
) -> TruncationContext:
    before, rest_of_line = line_before(request.prefix), line_after(request.suffix)
    is_fresh_line = not before.strip()
    return TruncationContext(
        is_single_line=is_single_line,
        is_fresh_line=is_fresh_line,
        min_indent=_compute_min_indent(request.mode, before, is_fresh_line=is_fresh_line),
        is_ended_by_blank_line=request.mode is Mode.INLINE,
        rest_of_line=rest_of_line.strip(),
        next_line=_first_line_of_text(request.suffix, len(rest_of_line) + 1),
        line_before=before,
        lines=BlockLines(request.language, request.path),
        prefix=request.prefix,
        suffix=request.suffix,
    )


_TEXT: Final = re.compile(r"\S")


def _first_line_of_text(text: str, start: int) -> str:
    """Return the first non-blank line from `start` on."""
    match = _TEXT.search(text, start)
    if match is None:
        return ""
    start = max(start, text.rfind("\n", 0, match.start()) + 1)
    end = text.find("\n", match.start())
    return text[start : end if end >= 0 else len(text)].rstrip()


def _compute_min_indent(mode: Mode, line_before: str, *, is_fresh_line: bool) -> int | None:
    """Return the block's minimum indentation; None: no line leaves the block.

    If only white space is before the cursor, the block has the cursor's indentation. Otherwise the
    result is for a line that opens the block. `min_indent_below` handles lines that open none.
    """
    if mode is Mode.FIM:  # the client decides where the completion ends
        return None
    if is_fresh_line:
        return len(line_before)
    return len(line_before) - len(line_before.lstrip()) + 1
