"""What writes the prompts of one model: its tokenizer, its markers, and what it has seen lately."""

from typing import Final

from caret.foundation.clock import Clock
from inference.completion.variant import Variant
from inference.context.prompt.chat_template import ChatTemplate
from inference.context.prompt.file_headers import Headers
from inference.context.prompt.layout import (
    DEFAULT_LAYOUT,
    Layout,
    ends_with_text,
    layout_named,
    markers_of,
    stop_token_ids,
)
from inference.context.prompt.model_families import Order, family_named, recognise
from inference.context.prompt.prompt_options import PLAIN_STYLE, Style
from inference.context.tokenization.line_cache import LineCache
from inference.context.tokenization.tokenized_lines import Passage
from inference.context.tokenization.tokenizer import Tokens
from inference.context.tokenization.ttl_cache import BriefMemory, Holders

# Ordinary code, to learn how many characters a token of this tokenizer holds.
_SAMPLE: Final = "def read(self, path):\n    with open(path) as file:\n        return file.read()\n"
# Of all together. A source has about 400, a passage 1,500; they are 8 bytes each, or 40 where no
# line of the line cache has them, too.
_MAX_SOURCE_TOKENS: Final = 8_000_000
_MAX_PASSAGE_TOKENS: Final = 8_000_000
_MAX_SCORES: Final = 200_000


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
        self.passages = BriefMemory[Passage](
            clock, max_weight=_MAX_PASSAGE_TOKENS, weigh=_weight_of
        )
        self.sources = BriefMemory[list[int]](
            clock, max_weight=_MAX_SOURCE_TOKENS, weigh=lambda source: 1 + len(source)
        )
        self.scores = BriefMemory[float](clock, max_weight=_MAX_SCORES)
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

    def forget_old(self) -> None:
        """What has been in no request lately; to be called again and again."""
        for memory in (self.lines, self.passages, self.sources, self.scores):
            memory.forget_old()

    def layout_of(self, variant: Variant) -> Layout:
        return layout_named(variant.layout) if variant.layout else self._layout

    def heals(self, order: Order) -> bool:
        """Whether a word that is being typed is left out of a prompt, for the model to write it.

        Needed where the model writes right behind the prefix: the half of a word has other tokens
        than the whole. EFIM's typed part belongs to the middle whatever the model was trained on.
        """
        return order is Order.EFIM or (self._heals_words and ends_with_text(order, self.family))


def _weight_of(passage: Passage) -> int:
    return len(passage.token_ids) + len(passage.starts) + len(passage.anchors)
