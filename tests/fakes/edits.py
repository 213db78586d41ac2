"""Editable regions, and the answers of a model whose edit format is zeta."""

from inference.context.edits.editable_region import EditableRegion
from inference.context.prompt.model_formats.edit_formats import get_edit_format

ZETA = get_edit_format("zeta")
REGION_START, REGION_END = "<|editable_region_start|>", "<|editable_region_end|>"
CURSOR = "<|user_cursor_is_here|>"


def make_answer(region: str) -> str:
    """Return the model's answer; `region` is the rewritten region without its last line break."""
    return f"{REGION_START}\n{region}\n{REGION_END}\n"


def make_region(
    *lines: str,
    start_line: int = 0,
    shown_lines: tuple[str, ...] | None = None,
    cursor_line: int = 0,
    has_last_line: bool = False,
) -> EditableRegion:
    return EditableRegion(
        edit_format=ZETA,
        start_line=start_line,
        lines=lines,
        shown_lines=lines if shown_lines is None else shown_lines,
        cursor_line=cursor_line,
        has_last_line=has_last_line,
    )
