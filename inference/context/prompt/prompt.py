"""The finished prompt for the engine."""

from dataclasses import dataclass

from inference.completion.segment import Segment
from inference.context.edits.editable_region import EditableRegion


@dataclass(frozen=True, slots=True)
class Prompt:
    token_ids: list[int]
    stop_token_ids: list[int]  # the family's markers and ends: any of them ends the completion
    # The completion ends with its first line, unless this line is unfinished or opens a block.
    is_single_line: bool
    num_files: int = 0  # other files in the prompt, whole or in part
    num_snippets: int = 0
    # Number of leading tokens that do not depend on the position of the cursor in its file.
    num_stable_tokens: int = 0
    # The word before the cursor that is withheld from the prompt. The completion must begin with it
    # (see inference.filtering.filter).
    healed_prefix: str = ""
    segments: tuple[Segment, ...] = ()  # in order, of all tokens
    # A limit of the completion besides the request's; None: only the request's limit applies.
    max_tokens: int | None = None
    # The lines that the model rewrites; None: the mode is not `edit`.
    region: EditableRegion | None = None
