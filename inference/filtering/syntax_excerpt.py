"""Extracts the part of a file around the cursor that is enough to parse the completion.

Parsing 5,000 lines would take 40 ms. An excerpt keeps the lines nearest to the cursor. Of the other
lines, it keeps only those that open and close the enclosing blocks: lines at which the indentation
decreases.

    class Shop {                kept: opens the block
        name = "";              left out
        open() {                kept: opens the block
            ...                 the nearest lines: kept
            this.|
            ...                 the nearest lines: kept
        }                       kept: closes the block
        close() { ... }         left out
    }                           kept: closes the block

This module has no grammars. It knows only brackets, quotes, and the words and marks at the
beginning of lines that close or continue a block.
"""

import re
from dataclasses import dataclass
from typing import Final

# A smaller and a larger excerpt: the numbers of lines kept before and after the cursor.
SIZES: Final = ((8, 6), (40, 25))
# For each size: characters on each side that are searched for lines that open and close blocks.
_MAX_CHARS: Final = (4_000, 8_000)
# Maximum distance between two lines of one construct that are kept together, for example between
# `} else {` and its `if (a) {`.
_MAX_JOINED_LINES: Final = 20
# Lines that continue a block whose first line has the same indentation.
_CONTINUES_BLOCK: Final = re.compile(
    r"[)\]}]|</|(?:else|elif|elsif|elseif|except|rescue|ensure|finally|catch|then|do|when|in)\b"
)
_BRANCH: Final = re.compile(r"\s*(?P<brace>\}\s*)?(?P<word>else|elif|except|finally|catch)\b")
# `;;` ends a branch of a `case` in Bash.
_CLOSES_BLOCK: Final = re.compile(r"[)\]}]|</|(?:end|fi|done|esac)\b|;;")


@dataclass(frozen=True, slots=True)
class Excerpt:
    before: str  # up to the cursor
    after: str  # from the cursor

    @property
    def line_before(self) -> str:
        return self.before.rpartition("\n")[2]

    @property
    def stable_lines(self) -> str:
        """The excerpt without the current line."""
        return (
            self.before[: len(self.before) - len(self.line_before)] + self.after.partition("\n")[2]
        )


def extract_excerpt(prefix: str, suffix: str, size: int) -> Excerpt:
    """Return the excerpt. `size` is an index into SIZES; larger excerpts take longer to parse."""
    num_before, num_after = SIZES[size]
    tail, head = prefix[-_MAX_CHARS[size] :], suffix[: _MAX_CHARS[size]]
    lines = tail.split("\n")
    if len(tail) < len(prefix) and len(lines) > 1:
        del lines[0]  # an incomplete line
    elif len(lines) > 1 and _count_closed(lines[0]) > 0:
        del lines[0]  # also incomplete: the text begins inside a construct
    indent = _measure_indent(lines[-1])
    after = head.split("\n")
    if len(head) < len(suffix) and len(after) > 1:
        del after[-1]  # an incomplete line
    return Excerpt(
        "\n".join(_select_above(lines, num_before)),
        "\n".join(_select_below(after, num_after, indent)),
    )


def _select_above(lines: list[str], num_kept: int) -> list[str]:
    """Return the last `num_kept` lines, and the lines above that open their blocks."""
    start = _find_whole_start(lines, num_kept)
    indent = next((_measure_indent(line) for line in lines[start:] if line.strip()), 0)
    selected = lines[start:][::-1]  # nearest to the cursor first
    continued_indent = _find_continued_indent(selected[-1])
    position = top = start  # the kept lines begin at `top`
    while position > 0 and (indent > 0 or continued_indent is not None):
        position -= 1
        line = lines[position]
        # Most lines are blank, or have this indentation or more. Their beginning is enough to skip
        # them.
        skipped_indent = indent if continued_indent is None else max(indent, continued_indent + 1)
        if not line[:skipped_indent].strip():
            continue
        line_indent = _measure_indent(line)
        if line_indent >= indent and line_indent != continued_indent:
            continue
        indent = line_indent
        if (stand_in := _make_stand_in(line)) is not None:
            selected += [line, stand_in]
            continued_indent = None  # a stand-in is an `if` or a `try`, which continues no block
            top = position
            continue
        first = _find_opening(lines, position)
        selected += lines[first : min(top, _find_head_end(lines, position))][::-1]
        continued_indent = _find_continued_indent(selected[-1])
        position = top = first
    return selected[::-1]


def _find_whole_start(lines: list[str], num_kept: int) -> int:
    """Return the index of the first kept line, outside of brackets and long strings.

    If there is no such line nearby, return the index that `num_kept` gives.
    """
    index = start = max(0, len(lines) - num_kept)
    text = "\n".join(lines[start:])
    depth, num_quotes = _count_closed(text), _count_quotes(text)
    while depth > 0 or num_quotes % 2:
        if not index or start - index == _MAX_JOINED_LINES:
            return start
        index -= 1
        depth += _count_closed(lines[index])
        num_quotes += _count_quotes(lines[index])
    return index


def _find_whole_end(lines: list[str], num_kept: int) -> int:
    """Return the index after the last kept line, outside of brackets and long strings.

    The first line is the rest of the cursor's line, and does not count. If there is no such end
    nearby, return the index after `num_kept` more lines.
    """
    depth = num_quotes = 0
    for number, line in enumerate(lines, start=1):
        depth = max(0, depth - _count_closed(line))
        num_quotes += _count_quotes(line)
        if number > num_kept and depth == 0 and num_quotes % 2 == 0:
            return number
        if number > num_kept + _MAX_JOINED_LINES:
            break
    return num_kept + 1


def _count_closed(text: str) -> int:
    """Return closed minus opened brackets, including those in strings."""
    # One call of `count` for each bracket is fast: the end of a completion waits until about twenty
    # lines are counted.
    num_closed = text.count(")") + text.count("]") + text.count("}")
    return num_closed - text.count("(") - text.count("[") - text.count("{")


def _count_quotes(text: str) -> int:
    return text.count('"""') + text.count("'''") + text.count("`")


def _find_continued_indent(below: str) -> int | None:
    """Return the indentation of the construct that the line `below` continues; None: none."""
    return _measure_indent(below) if _CONTINUES_BLOCK.match(below.lstrip()) else None


def _find_head_end(lines: list[str], position: int) -> int:
    """Return the index after the head at `position`: the lines above a block's body."""
    depth = 0
    for end in range(position, min(len(lines), position + _MAX_JOINED_LINES)):
        depth += sum(map(lines[end].count, "([")) - sum(map(lines[end].count, ")]"))
        if depth <= 0:
            return end + 1
    return position + 1


def _make_stand_in(line: str) -> str | None:
    """Return a stand-in for the `if` or `try` that the line continues.

    A stand-in saves the search for the actual line. Return None if the search is necessary.
    """
    match = _BRANCH.match(line)
    if match is None:
        return None
    is_try = match["word"] in ("except", "finally", "catch")
    indent = line[: len(line) - len(line.lstrip())]
    if match["brace"]:
        return f"{indent}try {{" if is_try else f"{indent}if (1) {{"
    if not line.rstrip().endswith(":"):
        return None
    return f"{indent}{'try' if is_try else 'if 1'}:\n{indent}    pass"


def _find_opening(lines: list[str], position: int) -> int:
    """Return the index of the line that begins the construct of the line at `position`.

    For an `else`, that is the `if`. For a line that continues no construct, it is `position`.
    """
    indent, opening = _measure_indent(lines[position]), position
    while _CONTINUES_BLOCK.match(lines[opening].lstrip()):
        above = opening - 1
        while above >= 0 and (not lines[above].strip() or _measure_indent(lines[above]) > indent):
            above -= 1
        if (
            above < 0
            or _measure_indent(lines[above]) < indent
            or position - above > _MAX_JOINED_LINES
        ):
            return opening
        opening = above
    return opening


def _select_below(lines: list[str], num_kept: int, indent: int) -> list[str]:
    """Return the rest of the cursor's line, `num_kept` more lines, and lines that close blocks.

    `indent` is the indentation of the cursor's line.
    """
    end = _find_whole_end(lines, num_kept)
    selected = lines[:end]
    # From the last line up, without the rest of the cursor's line.
    last_indent = next((_measure_indent(line) for line in selected[:0:-1] if line.strip()), indent)
    depth = 0  # brackets opened by lines that are left out
    for line in lines[end:]:
        if not line[: last_indent + 1].strip():
            continue  # indented more, or blank
        line_indent = _measure_indent(line)
        is_inside_omitted = depth > 0
        depth = max(0, depth - _count_closed(line))
        is_closing = _CLOSES_BLOCK.match(line, line_indent) is not None and not is_inside_omitted
        if is_closing or line_indent < last_indent:
            last_indent = line_indent
        if is_closing:
            # Without the comma, because the lines after it are left out.
            selected.append(line.rstrip().rstrip(","))
        if line_indent == 0 and not is_inside_omitted:
            break
    return selected


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip())
