"""What writes the prompts of one model: its tokenizer, its markers, and what it has seen lately."""

from typing import Final

from caret.foundation.clock import Clock
from inference.completion.variant import Variant
from inference.context.brief_memory import BriefMemory, Holders
from inference.context.chat_template import ChatTemplate
from inference.context.fim import Order, family_named, recognise
from inference.context.headers import Headers
from inference.context.layout import (
    DEFAULT_LAYOUT,
    Layout,
    ends_with_text,
    layout_named,
    markers_of,
    stop_token_ids,
)
from inference.context.line_cache import LineCache
from inference.context.passage import Passage
from inference.context.style import PLAIN_STYLE, Style
from inference.context.tokens import Tokens

# Ordinary code, to learn how many characters a token of this tokenizer holds.
_SAMPLE: Final = "def read(self, path):\n    with open(path) as file:\n        return file.read()\n"
_MAX_SOURCES: Final = 10_000  # of a generation; about 3 KB each
_MAX_SCORES: Final = 100_000
_MAX_PASSAGES: Final = 2_000  # about 12 KB each; two for each file that is being typed in


class PromptWriter:
    """All that is known of one model's prompts; made once, at start."""

    def __init__(
        self,
        tokens: Tokens,
        *,
        model: str,
        max_context_tokens: int,
        clock: Clock,
        style: Style = PLAIN_STYLE,
        chat_template: ChatTemplate | None = None,
    ) -> None:
        """`chat_template`: the model's, if it has one. Raises BadSetting: a tokenizer without
        markers, a name that is none."""
        self.tokens = tokens
        self.holders = Holders()
        self.lines = LineCache(tokens, clock)
        self.passages = BriefMemory[Passage](clock, max_items=_MAX_PASSAGES)
        self.sources = BriefMemory[list[int]](clock, max_items=_MAX_SOURCES)
        self.scores = BriefMemory[float](clock, max_items=_MAX_SCORES)
        self.family = (
            family_named(style.family) if style.family else recognise(tokens.token_id, model=model)
        )
        self.markers = markers_of(self.family, tokens)
        self.headers = Headers(self.family, tokens)
        self.stop_token_ids = stop_token_ids(self.family, tokens)
        self.chat_template = chat_template
        self.max_context_tokens = max_context_tokens
        self.chars_per_token = len(_SAMPLE) / len(tokens.encode(_SAMPLE))
        self._layout = layout_named(style.layout or DEFAULT_LAYOUT)
        self._heals_words = style.heals_words

    def layout_of(self, variant: Variant) -> Layout:
        return layout_named(variant.layout) if variant.layout else self._layout

    def heals(self, order: Order) -> bool:
        """Whether a word that is being typed is left out of a prompt, for the model to write it.

        Needed where the model writes right behind the prefix: the half of a word has other tokens
        than the whole. EFIM's typed part belongs to the middle whatever the model was trained on.
        """
        return order is Order.EFIM or (self._heals_words and ends_with_text(order, self.family))
