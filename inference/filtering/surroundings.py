"""Reads from a request what the cutter has to know of the text around the cursor."""

from caret.contracts.policy import Mode
from inference.completion.request import CompletionRequest
from inference.filtering.cut import Surroundings


def surroundings_of(request: CompletionRequest, *, is_single_line: bool) -> Surroundings:
    line_before = request.prefix.rpartition("\n")[2]
    line_after, _, after = request.suffix.partition("\n")
    is_fresh_line = not line_before.strip()
    return Surroundings(
        is_single_line=is_single_line,
        is_fresh_line=is_fresh_line,
        min_indent=_min_indent(request.mode, line_before, is_fresh_line=is_fresh_line),
        ends_at_blank_line=request.mode is Mode.INLINE,
        rest_of_line=line_after.strip(),
        next_line=next((line.rstrip() for line in after.split("\n") if line.strip()), ""),
    )


def _min_indent(mode: Mode, line_before: str, *, is_fresh_line: bool) -> int | None:
    """On a fresh line the block is where the cursor stands, else it is what this line opens."""
    if mode is Mode.FIM:  # the client has its own idea of where it ends
        return None
    if is_fresh_line:
        return len(line_before)
    return len(line_before) - len(line_before.lstrip()) + 1
