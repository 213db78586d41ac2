"""What an operator says of a pool's prompts."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class PromptOptions:
    """Names are checked by the PromptWriter that is made of it."""

    layout: str | None = None  # None: the usual one
    family: str | None = None  # None: as the tokenizer's markers tell
    # False: a model that was trained with prefix and middle encoded apart, so that it goes on in
    # mid-word, behind whatever tokens the half of a word has.
    has_token_healing: bool = True


DEFAULT_PROMPT_OPTIONS: Final = PromptOptions()
