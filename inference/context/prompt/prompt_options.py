"""The operator's options for a pool's prompts."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class PromptOptions:
    """Layout, model family and edit format are names. PromptWriter validates them."""

    layout: str | None = None  # None: the default layout
    family: str | None = None  # None: detected by the tokenizer's markers
    # False: the model was trained with prefix and middle encoded separately. So it can continue a
    # partial word, even if the whole word has other tokens.
    has_token_healing: bool = True
    budget_tokens: int | None = None  # of a prompt; None: the tier's default
    edit_format: str | None = None  # None: the model proposes no edits


DEFAULT_PROMPT_OPTIONS: Final = PromptOptions()
