"""Chooses the lines around the cursor that a model sees, and those it may rewrite. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from detect_secrets.util.filetype import FileType

from inference.context.prompt.model_formats.edit_formats import EditExcerpt, EditFormat
from inference.context.redaction.redact import MAX_KEY_CHARS, redact_lines, redact_private_keys


@dataclass(frozen=True, slots=True)
class EditableRegion:
    """The lines of the file that the model may rewrite, without their line breaks."""

    edit_format: EditFormat
    start_line: int  # counted from the first line of the prefix that the client sent
    lines: tuple[str, ...]  # as in the file, secrets included
    shown_lines: tuple[str, ...]  # the same lines without secrets, as the model sees them
    cursor_line: int  # index in `lines`
    has_last_line: bool  # the region ends with the file's last line, which has no line break


@dataclass(frozen=True, slots=True)
class EditContext:
    """The lines around a cursor, and the region among them."""

    region: EditableRegion
    start_line: int  # the first shown line, counted from the first line of the prefix
    shown_lines: tuple[str, ...]  # above the region, in it and below it, without secrets
    excerpt: EditExcerpt


@dataclass(frozen=True, slots=True)
class _Window:
    """Whole lines around the cursor, without their line breaks."""

    lines: list[str]
    start_line: int  # of the window, counted from the first line of the prefix
    cursor_line: int  # index in `lines`
    cursor_column: int  # characters before the cursor in its line
    has_last_line: bool  # the window ends with the file's last line


@dataclass(frozen=True, slots=True)
class _Selection:
    """The lines of a window that the model sees."""

    region: range  # indexes in the window's lines
    first: int  # index of the first shown line
    shown_lines: list[str]  # without secrets


@dataclass(frozen=True, slots=True)
class RegionLimits:
    region_chars: int  # at most, in the editable region
    context_chars: int  # at most, in the lines above the region, and in those below it


def find_edit_context(
    edit_format: EditFormat,
    text: tuple[str, str],
    limits: RegionLimits,
    *,
    path: str,
    kind: FileType,
) -> EditContext | None:
    """Return the lines around the cursor, or None if they cannot be edited.

    The reasons are: the cursor's line is too long, a private key is near, or a marker of the format
    is in the shown lines or in the path. `text` is the prefix and the suffix.
    """
    prefix, suffix = map(_unify_line_breaks, text)
    window = _cut_window(prefix, suffix, limits.region_chars + limits.context_chars)
    if window is None or _has_private_key(prefix, suffix, window):
        return None
    selection = _select_lines(window, limits, kind)
    if selection is None:
        return None
    if any(mark in line for line in [*selection.shown_lines, path] for mark in edit_format.markers):
        return None
    return _to_context(edit_format, path, window, selection)


def _select_lines(window: _Window, limits: RegionLimits, kind: FileType) -> _Selection | None:
    """Choose the region, and lines above and below it; None: the cursor's line does not fit."""
    region = _choose_lines(window.lines, window.cursor_line, max_chars=limits.region_chars)
    if region is None:
        return None
    # Reversed, so that the line nearest to the region is chosen first.
    above = _choose_lines(window.lines[: region.start][::-1], 0, max_chars=limits.context_chars)
    below = _choose_lines(window.lines[region.stop :], 0, max_chars=limits.context_chars)
    first, last = region.start - len(above or ()), region.stop + len(below or ())
    return _Selection(region, first, redact_lines(window.lines[first:last], kind))


def _to_context(
    edit_format: EditFormat, path: str, window: _Window, selection: _Selection
) -> EditContext:
    region, shown_lines = selection.region, selection.shown_lines
    start, end = region.start - selection.first, region.stop - selection.first
    shown_region = shown_lines[start:end]
    excerpt = EditExcerpt(
        path=path,
        is_file_start=window.start_line + selection.first == 0,
        above="".join(f"{line}\n" for line in shown_lines[:start]),
        region="\n".join(shown_region),
        cursor=_find_cursor(window, region, shown_region),
        below="\n".join(shown_lines[end:]),
    )
    editable = EditableRegion(
        edit_format=edit_format,
        start_line=window.start_line + region.start,
        lines=tuple(window.lines[region.start : region.stop]),
        shown_lines=tuple(shown_region),
        cursor_line=window.cursor_line - region.start,
        has_last_line=window.has_last_line and region.stop == len(window.lines),
    )
    return EditContext(
        region=editable,
        start_line=window.start_line + selection.first,
        shown_lines=tuple(shown_lines),
        excerpt=excerpt,
    )


def _unify_line_breaks(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _cut_window(prefix: str, suffix: str, max_chars: int) -> _Window | None:
    """Return whole lines, at most `max_chars` on each side; None: the cursor's line is longer."""
    start, end = 0, len(suffix)
    if len(prefix) > max_chars:
        start = prefix.find("\n", len(prefix) - max_chars) + 1
        if not start:  # no line break: the cursor's line is longer
            return None
    if len(suffix) > max_chars:
        end = suffix.rfind("\n", 0, max_chars)
        if end < 0:
            return None
    before = prefix[start:].split("\n")
    after = suffix[:end].split("\n")
    return _Window(
        lines=[*before[:-1], before[-1] + after[0], *after[1:]],
        start_line=prefix.count("\n", 0, start),
        cursor_line=len(before) - 1,
        cursor_column=len(before[-1]),
        has_last_line=end == len(suffix),
    )


def _has_private_key(prefix: str, suffix: str, window: _Window) -> bool:
    """Return whether a private key is in the window, or within MAX_KEY_CHARS before it.

    Lines of the window may belong to a key that begins above them. The search is generous: it
    covers the length of the whole window on both sides of the cursor.
    """
    num_chars = sum(len(line) + 1 for line in window.lines)
    nearby = prefix[-(num_chars + MAX_KEY_CHARS) :] + suffix[:num_chars]
    return redact_private_keys(nearby) != nearby


def _choose_lines(lines: Sequence[str], first: int, *, max_chars: int) -> range | None:
    """Return the indexes of the lines that fit, each with its line break.

    The line with the index `first` is chosen first, then lines below and above it in turn. None:
    not even this line fits, or there is no such line.
    """
    if first >= len(lines) or len(lines[first]) >= max_chars:
        return None
    start, end, room = first, first + 1, max_chars - len(lines[first]) - 1
    can_grow_down = can_grow_up = True
    while can_grow_down or can_grow_up:
        can_grow_down = can_grow_down and end < len(lines) and len(lines[end]) < room
        if can_grow_down:
            room -= len(lines[end]) + 1
            end += 1
        can_grow_up = can_grow_up and start > 0 and len(lines[start - 1]) < room
        if can_grow_up:
            start -= 1
            room -= len(lines[start]) + 1
    return range(start, end)


def _find_cursor(window: _Window, region: range, shown_lines: Sequence[str]) -> int:
    """Return the cursor's index in the shown region.

    If the cursor's line is redacted, return the index of that line's end.
    """
    index = window.cursor_line - region.start
    line = shown_lines[index]
    is_redacted = line != window.lines[window.cursor_line]
    column = len(line) if is_redacted else window.cursor_column
    return sum(len(line_above) + 1 for line_above in shown_lines[:index]) + column
