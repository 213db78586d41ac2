"""Decides where a completion ends. Pure: generated text in, text to show out.

A line is shown as it grows. But its beginning is held until the line certainly belongs to the
completion, because shown text is never revoked. A completion ends
- with a complete line, if the request is for a single line. A line that opens a block, a bracket or
  an expression is not complete;
- before a line that leaves the block. These lines do not leave it: a line that closes a block that
  would otherwise stay open; a branch (such as `else`) of the generated statement; the next
  statement of an outer block, if it is the first generated line with text; and a line that belongs
  to the block despite its indentation (`can_continue`);
- before a blank line, in the mode inline, unless a later line must close a generated construct;
- before a line that repeats the next line with text below the cursor;
- before a line, or a group of up to four lines, that would occur a third time in a row;
- where a line becomes repetitive;
- before a character that could not be decoded (U+FFFD), usually an incomplete one.

White space at the end of the text is held, and so is text that may repeat the rest of the cursor's
line. Both are dropped if the completion ends there.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from inference.context.prompt.block_lines import (
    can_become_end,
    has_flat_body,
    has_open_parenthesis,
    is_end,
    measure_indent,
)
from inference.filtering.filter_reason import FilterReason
from inference.filtering.truncation.brackets import CLOSERS
from inference.filtering.truncation.repetition import RecentLines, SuffixOverlap, is_repeating
from inference.filtering.truncation.truncation_context import TruncationContext

# A line is checked each time it has grown by this number of characters, to keep the cost low.
CHECK_EVERY: Final = 16
_UNDECODED: Final = "\ufffd"
_ENDINGS: Final = ")]};, \t"  # may repeat closing brackets after the cursor

# Returns whether a line continues the block despite its indentation. Arguments: the text before
# the line, the line.
CanContinue = Callable[[str, str], bool]


class _Extent(Enum):
    """The lines that may follow the current one."""

    LINE = auto()  # none, unless this line opens a block or is unfinished
    CLOSING = auto()  # lines that close a block
    BLOCK = auto()  # lines of the block


class _LineRole(Enum):
    """The relation of a line to the block."""

    INSIDE = auto()
    OUTSIDE = auto()
    CLOSING = auto()  # may close or continue a block (see _find_needed_end)
    LONE_BRACE = auto()  # opens the block of the line above
    UNDECIDED = auto()  # more of the line is needed


class Truncator:
    def __init__(self, context: TruncationContext, can_continue: CanContinue | None = None) -> None:
        self._context = context
        self._can_continue = can_continue
        self._text = ""  # the lines before the current one
        self._pending_space = ""  # white space and newlines before the current line
        self._line = ""  # the current line so far
        self._num_shown = 0  # characters of the current line that were shown
        self._is_first_line = True
        # The end of the line that may repeat the rest of the cursor's line.
        self._suffix_overlap = SuffixOverlap(context.rest_of_line)
        self._recent_lines = RecentLines()
        self._extent = _Extent.LINE if context.is_single_line else _Extent.BLOCK
        self._min_indent = context.min_indent
        # The indentation of the statement whose block is generated, and of its branches.
        self._head_indent: int | None = None
        self.has_ended = False
        self.reason: FilterReason | None = None  # None: not ended, or ended by the engine

    def feed(self, text: str) -> str:
        """Return the text that can be shown now, possibly empty; always empty after `has_ended`."""
        visible_text = ""
        for index, part in enumerate(text.split("\n")):
            if index and not self.has_ended:
                visible_text += self._end_line()
            visible_text += self._feed_line(part)
        return visible_text

    def finish(self) -> str:
        """End the completion, unless its last line is blank. Return its held text."""
        if self.has_ended or not self._line.strip():
            return ""
        line = self._trim_line()
        self.has_ended = True
        if line is None:
            return ""
        trimmed = self._drop_duplicate(line)
        if trimmed != line:
            self._end(FilterReason.REPEATS_SUFFIX)
        return self._take_unshown(trimmed)

    def _end(self, reason: FilterReason) -> None:
        self.has_ended = True
        self.reason = self.reason or reason

    def _leave_block(self) -> None:
        is_block = self._extent is _Extent.BLOCK
        self._end(FilterReason.BLOCK_END if is_block else FilterReason.LINE_END)

    def _feed_line(self, part: str) -> str:
        """Extend the line in steps, so that the result does not depend on the chunks."""
        visible_text = ""
        while part and not self.has_ended:
            step = CHECK_EVERY - len(self._line) % CHECK_EVERY
            piece, part = part[:step], part[step:]
            decoded, undecoded, _ = piece.partition(_UNDECODED)
            self._line += decoded
            self._suffix_overlap.feed(decoded)
            visible_text += self._release_text()
            if undecoded and not self.has_ended:
                visible_text += self.finish()
                self._end(FilterReason.INCOMPLETE_CHARACTER)
            elif len(piece) == step and is_repeating(self._line):
                self._end(FilterReason.REPETITION)
        return visible_text

    def _release_text(self) -> str:
        """Return the text of the current line that can be shown now."""
        content = self._line.strip()
        if not content:
            return ""
        role = _LineRole.INSIDE if self._num_shown else self._find_role()
        if role is _LineRole.OUTSIDE:
            self._leave_block()
            return ""
        if role is not _LineRole.INSIDE or self._can_become_repetition():
            return ""
        line = self._line.rstrip()
        return self._take_unshown(line[: len(line) - self._count_uncertain(line)].rstrip())

    def _count_uncertain(self, line: str) -> int:
        """Return the number of characters that may repeat the rest of the cursor's line."""
        if self._context.rest_of_line[:1] not in tuple(CLOSERS):  # "" is in every string
            return self._suffix_overlap.length_before_blank
        return max(self._suffix_overlap.length_before_blank, len(line) - len(line.rstrip(_ENDINGS)))

    def _end_line(self) -> str:
        if not self._line.strip():
            self._end_blank_line()
            return ""
        line = self._trim_line()
        if line is None:
            self.has_ended = True
            return ""
        if self._decide_end_after(line):
            visible_text = self._take_unshown(self._drop_duplicate(line))
            self._end(FilterReason.LINE_END)
            return visible_text
        if len(line) < len(self._line.rstrip()):
            self._end(FilterReason.REPEATS_SUFFIX)
        has_indent_before = self._is_first_line and self._context.is_fresh_line
        self._recent_lines.add(self._context.line_before + line if has_indent_before else line)
        visible_text = self._take_unshown(line)
        self._start_line(trailing_space=self._line[len(line) :])
        return visible_text

    def _end_blank_line(self) -> None:
        context = self._context
        if self._is_first_line:
            if context.is_single_line and not context.can_continue_below:
                self._end(FilterReason.LINE_END)
            self._min_indent, self._head_indent = context.min_indent_below, context.head_indent
        elif self._extent is _Extent.CLOSING:
            self._end(FilterReason.LINE_END)
        elif context.is_ended_by_blank_line and not self._is_inside_construct():
            self._end(FilterReason.BLANK_LINE)
        self._start_line(trailing_space=self._line)

    def _start_line(self, *, trailing_space: str) -> None:
        self._pending_space += trailing_space + "\n"
        self._text += f"{self._line}\n"
        self._line, self._num_shown, self._is_first_line = "", 0, False
        self._suffix_overlap.restart()

    def _take_unshown(self, line: str) -> str:
        """Return the part of `line` that was not shown yet, with the held text before it."""
        if len(line) <= self._num_shown:
            return ""
        visible_text = self._pending_space + line[self._num_shown :]
        self._pending_space, self._num_shown = "", len(line)
        return visible_text

    def _find_role(self, *, is_whole: bool = False) -> _LineRole:
        """Return the relation of the current line, which has text, to the block."""
        if self._is_indented():
            return _LineRole.INSIDE
        content = self._line.strip()
        if content[0] in CLOSERS or is_end(content):
            return _LineRole.CLOSING
        if not is_whole and can_become_end(content):
            return _LineRole.UNDECIDED
        if content == "{" and self._may_begin_with_brace():
            return _LineRole.LONE_BRACE
        if self._may_branch() and self._context.lines.can_become_branch(content):
            return _LineRole.CLOSING
        if self._is_next_statement() or self._may_continue(self._line):
            return _LineRole.INSIDE
        return _LineRole.OUTSIDE

    def _is_indented(self) -> bool:
        """Return whether the current line has the indentation of the block."""
        if self._is_first_line or self._min_indent is None:
            return True
        return self._extent is not _Extent.CLOSING and (
            measure_indent(self._line) >= self._min_indent
        )

    def _is_next_statement(self) -> bool:
        """Return whether the current line is the first with text and continues an outer block."""
        return not self._text.strip() and (
            self._context.is_next_statement(measure_indent(self._line))
        )

    def _may_continue(self, line: str) -> bool:
        return self._can_continue is not None and self._can_continue(self._text, line)

    def _may_branch(self) -> bool:
        """Return whether the current line may be a branch of the statement above."""
        return not self._text.strip() or measure_indent(self._line) == self._head_indent

    def _may_begin_with_brace(self) -> bool:
        head = self._get_whole_line_above()
        return (
            self._context.lines.may_have_lone_brace(head)
            and measure_indent(self._line) <= measure_indent(head)
            and self._context.next_line.strip() != "{"
        )

    def _get_whole_line_above(self) -> str:
        above = self._text.rstrip()
        line = above.rpartition("\n")[2]
        return line if "\n" in above else self._context.line_before + line

    def _trim_line(self) -> str | None:
        """Return the part of the whole line to keep; None: end before it, and `reason` is set."""
        line: str | None = self._line.rstrip()
        role = self._find_role(is_whole=True)
        if role is _LineRole.CLOSING:
            line = self._find_needed_end()
        if line is None or role is _LineRole.OUTSIDE:
            self._leave_block()
            return None
        self.reason = self._find_repetition(line.strip())
        return line if self.reason is None else None

    def _find_needed_end(self) -> str | None:
        """Return the part of a closing line that the text around the cursor needs."""
        line, indent = self._line.rstrip(), measure_indent(self._line)
        if line[indent] in CLOSERS:
            brackets = self._context.brackets
            line = brackets.trim(self._text, line)
            is_needed = brackets.count_unmatched(self._text + line) <= (
                brackets.count_unmatched(self._text)
            )
            return line if line.strip() and is_needed else None
        if is_end(line):
            return line if self._context.is_end_missing(self._text, indent) else None
        if self._context.lines.is_label(line):
            return line
        is_possible = self._context.lines.is_branch(line) and self._context.can_have_branch(
            self._text, line
        )
        return line if is_possible else None

    def _decide_end_after(self, line: str) -> bool:
        """Return whether the completion ends with this line. If not, set which lines may follow."""
        context = self._context
        whole_line = context.line_before + line if self._is_first_line else line
        if self._extent is _Extent.BLOCK and self._find_role(is_whole=True) is _LineRole.INSIDE:
            if self._is_first_line and context.lines.is_opening(whole_line):
                self._head_indent = measure_indent(whole_line)
            return False
        if self._drop_duplicate(line) != line:
            return True
        if self._is_first_line and line.strip() == "," and not context.rest_of_line:
            self._min_indent = context.min_indent_below
            return False  # the comma continues a list below
        return not self._decide_lines_below(line, whole_line)

    def _decide_lines_below(self, line: str, whole_line: str) -> bool:
        """Return whether lines may follow, and set which ones (`_extent` and the indentations)."""
        lines = self._context.lines
        if lines.is_unfinished(whole_line):
            if self._is_whole_head(line, whole_line):
                return False
            self._continue_after(whole_line, is_block=not lines.is_continued(whole_line))
            return True
        if self._extent is _Extent.BLOCK:
            return True
        if not self._is_first_line and lines.is_item_with_key(line):
            self._continue_after(whole_line, is_block=True)
            return True
        self._extent = _Extent.BLOCK if lines.is_lisp else _Extent.CLOSING
        return self._may_be_followed(line, whole_line)

    def _is_whole_head(self, line: str, whole_line: str) -> bool:
        """Return whether the line ends the head of a block whose body is in the suffix."""
        indent = measure_indent(whole_line)
        is_head = self._is_first_line or indent == self._head_indent
        if not is_head or not self._context.has_body(indent):
            return False
        # With an open parenthesis, the head goes on below, unless the suffix closes it.
        return not has_open_parenthesis(whole_line) or not self._may_be_followed(line, whole_line)

    def _continue_after(self, head: str, *, is_block: bool) -> None:
        """Expect the block that the line `head` opens, or the next line of its expression."""
        indent = measure_indent(head)
        self._extent = _Extent.BLOCK if is_block else _Extent.LINE
        self._min_indent = indent + 1 if is_block and not has_flat_body(head) else indent
        if is_block and not self._context.lines.is_branch(head):
            self._head_indent = indent

    def _may_be_followed(self, line: str, whole_line: str) -> bool:
        """Return whether the next line may close a bracket, or be the lone brace of this line."""
        context = self._context
        if context.rest_of_line:
            return False
        return context.lines.has_lone_brace(whole_line) or (
            context.brackets.count_unmatched(self._text + line) > 0
        )

    def _can_become_repetition(self) -> bool:
        """Return whether the line may become a repetition. False if a part of it was shown."""
        if self._num_shown:
            return False
        line, next_line = self._get_comparable_texts()
        repeats_suffix = self._has_no_text_before() and next_line.startswith(line)
        return repeats_suffix or self._recent_lines.can_become_repetition(self._line.rstrip())

    def _find_repetition(self, content: str) -> FilterReason | None:
        """Return the reason if the line repeats other lines; None: it does not."""
        if self._is_repeating_suffix() and not self._is_needed(content):
            return FilterReason.REPEATS_SUFFIX
        is_repetition = self._recent_lines.is_repetition(self._line.rstrip())
        return FilterReason.REPETITION if is_repetition else None

    def _is_needed(self, content: str) -> bool:
        """Return whether the line closes brackets that the text after the cursor does not."""
        if content[0] not in CLOSERS:
            return False
        count = self._context.brackets.count_unmatched
        return count(self._text + self._line) < count(self._text)

    def _is_repeating_suffix(self) -> bool:
        line, next_line = self._get_comparable_texts()
        return self._has_no_text_before() and line == next_line

    def _get_comparable_texts(self) -> tuple[str, str]:
        """Return the line and the next line with text below the cursor, in comparable form.

        Indentation counts, to distinguish closing brackets of different blocks. On the cursor's own
        line, the indentation is before the cursor.
        """
        if self._is_first_line:
            return self._line.strip(), self._context.next_line.strip()
        return self._line.rstrip(), self._context.next_line

    def _has_no_text_before(self) -> bool:
        return not self._is_first_line or self._context.is_fresh_line

    def _drop_duplicate(self, line: str) -> str:
        """Drop the end of the line if the same text already follows the cursor."""
        rest_of_line = self._context.rest_of_line
        if not rest_of_line:
            return line
        has_closer, brackets = rest_of_line[0] in CLOSERS, self._context.brackets
        if line.endswith(rest_of_line):
            trimmed = line.removesuffix(rest_of_line).rstrip()
            count = brackets.count_unmatched
            if not has_closer or count(self._text + trimmed) <= count(self._text + line):
                return trimmed
        if not has_closer:
            return line
        if line[-1] in ";," and rest_of_line[-1] == line[-1]:
            line = line[:-1].rstrip()
        return brackets.trim(self._text, line)

    def _is_inside_construct(self) -> bool:
        """Return whether the completion has opened something that a later line closes."""
        brackets, indent = self._context.brackets, self._head_indent
        has_open_bracket = brackets.count_unmatched(self._text) > brackets.num_unmatched_before
        if has_open_bracket or self._may_continue(""):
            return True
        if indent is None or not self._context.lines.is_ended_by_line:
            return False
        return self._context.is_end_missing(self._text, indent)
