"""The finished prompt, as the engine takes it."""

from dataclasses import dataclass

from inference.completion.segment import Segment


@dataclass(frozen=True, slots=True)
class Prompt:
    token_ids: list[int]
    stop_token_ids: list[int]  # the family's markers and ends: any of them ends the completion
    is_single_line: bool  # the completion ends with the line
    num_files: int = 0  # other files that are in it, whole or in part
    num_snippets: int = 0
    # Of its beginning, how many tokens stay as they are wherever in its file the cursor stands.
    num_stable_tokens: int = 0
    # What of the text before the cursor is not in the prompt: a word that is being typed. The
    # completion begins with it, or is none (see inference.filtering.token_healing).
    healed_prefix: str = ""
    segments: tuple[Segment, ...] = ()  # in order; of all its tokens
