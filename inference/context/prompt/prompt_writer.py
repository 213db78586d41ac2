"""What writes the prompts of one model: its tokenizer, its markers, and what it has seen lately."""

from typing import Final

from caret.foundation.clock import Clock
from inference.completion.variant import Variant
from inference.context.prompt.chat_template import ChatTemplate
from inference.context.prompt.file_headers import FileHeaders
from inference.context.prompt.layout import (
    DEFAULT_LAYOUT,
    PromptLayout,
    ends_with_text,
    get_layout,
    resolve_markers,
    stop_token_ids,
)
from inference.context.prompt.model_families import FimOrder, detect_family, get_family
from inference.context.prompt.prompt_options import DEFAULT_PROMPT_OPTIONS, PromptOptions
from inference.context.tokenization.line_cache import LineCache
from inference.context.tokenization.tokenized_lines import TokenizedLines
from inference.context.tokenization.tokenizer import Tokenizer
from inference.context.tokenization.ttl_cache import CachePartitions, TtlCache

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
        tokens: Tokenizer,
        *,
        model: str,
        max_context_tokens: int,
        clock: Clock,
        style: PromptOptions = DEFAULT_PROMPT_OPTIONS,
        chat_template: ChatTemplate | None = None,
    ) -> None:
        """`chat_template`: the model's, if it has one. Raises BadSetting: a tokenizer without
        markers, a name that is none."""
        self.tokenizer = tokens
        self.partitions = CachePartitions()
        self.lines = LineCache(tokens, clock)
        self.line_windows = TtlCache[TokenizedLines](
            clock, max_weight=_MAX_PASSAGE_TOKENS, weigh=_weight_of
        )
        self.items = TtlCache[list[int]](
            clock, max_weight=_MAX_SOURCE_TOKENS, weigh=lambda source: 1 + len(source)
        )
        self.scores = TtlCache[float](clock, max_weight=_MAX_SCORES)
        self.family = (
            get_family(style.family)
            if style.family
            else detect_family(tokens.get_token_id, model=model)
        )
        self.markers = resolve_markers(self.family, tokens)
        self.headers = FileHeaders(self.family, tokens)
        self.stop_token_ids = stop_token_ids(self.family, tokens)
        self.chat_template = chat_template
        self.max_context_tokens = max_context_tokens
        self.chars_per_token = len(_SAMPLE) / len(tokens.encode(_SAMPLE))
        self._layout = get_layout(style.layout or DEFAULT_LAYOUT)
        self._heals_words = style.has_token_healing

    def evict_expired(self) -> None:
        """What has been in no request lately; to be called again and again."""
        for memory in (self.lines, self.line_windows, self.items, self.scores):
            memory.evict_expired()

    def get_layout(self, variant: Variant) -> PromptLayout:
        return get_layout(variant.layout) if variant.layout else self._layout

    def has_token_healing(self, order: FimOrder) -> bool:
        """Whether a word that is being typed is left out of a prompt, for the model to write it.

        Needed where the model writes right behind the prefix: the half of a word has other tokens
        than the whole. EFIM's typed part belongs to the middle whatever the model was trained on.
        """
        return order is FimOrder.EFIM or (self._heals_words and ends_with_text(order, self.family))


def _weight_of(passage: TokenizedLines) -> int:
    return len(passage.token_ids) + len(passage.starts) + len(passage.anchors)
