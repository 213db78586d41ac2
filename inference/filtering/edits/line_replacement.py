"""Finds the lines that a model's answer changes. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from inference.completion.edit import ProposedEdit
from inference.context.edits.editable_region import EditableRegion


@dataclass(frozen=True, slots=True)
class LineReplacement:
    """Lines of a region, and the lines that replace them, without line breaks."""

    start: int  # index of the first removed line in the region
    end: int  # index of the first line after the removed ones
    removed: tuple[str, ...]
    added: tuple[str, ...]

    @property
    def changed_texts(self) -> tuple[str, str]:
        """The removed and the added text, without their common beginning and end."""
        removed, added = "\n".join(self.removed), "\n".join(self.added)
        start = _count_common(removed, added)
        num_after = _count_common(removed[start:][::-1], added[start:][::-1])
        return removed[start : len(removed) - num_after], added[start : len(added) - num_after]


def find_replacement(region: EditableRegion, answer: str) -> LineReplacement | None:
    """Return the smallest replacement that turns the region into the answer; None: both are equal.

    White space at the ends of lines is ignored in the comparison. The model saw `shown_lines`, the
    lines without secrets. The replacement removes the lines of the file, which have the same
    indexes.
    """
    old = [line.rstrip() for line in region.shown_lines]
    answered = answer.replace("\r\n", "\n").split("\n")
    new = [line.rstrip() for line in answered]
    start = _count_common(old, new)
    num_below = _count_common(old[start:][::-1], new[start:][::-1])
    end = len(old) - num_below
    added = answered[start : len(new) - num_below]
    if start == end and not added:
        return None
    return LineReplacement(start, end, region.lines[start:end], tuple(added))


def to_proposed_edit(region: EditableRegion, replacement: LineReplacement) -> ProposedEdit:
    """Return the replacement as an edit of the text that the client sent."""
    start, added = replacement.start, list(replacement.added)
    is_at_file_end = region.has_last_line and replacement.end == len(region.lines)
    is_insertion = start == replacement.end
    is_deletion_of_text = not added and bool(region.lines[-1].strip())
    if is_at_file_end and (is_insertion or is_deletion_of_text):
        # The line above is replaced as well. An insertion adds the line break that this line does
        # not have. A deletion removes its line break, unless the file ends with a line break.
        start -= 1
        added.insert(0, region.lines[start])
    text = "\n".join(added)
    return ProposedEdit(
        start_line=region.start_line + start,
        end_line=region.start_line + replacement.end,
        # The last line of a file has no line break.
        text=f"{text}\n" if added and not is_at_file_end else text,
        # The longer of the removed and the added text counts. At least 1: an inserted empty line
        # has no changed characters.
        num_changed_chars=max(1, *map(len, replacement.changed_texts)),
    )


def _count_common(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the number of items that both sequences begin with."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count
