"""The parts that are needed to write prompts for one model: tokenizer, markers and caches."""

import asyncio
from collections.abc import Collection
from typing import Final

from caret.contracts.policy import Tier
from caret.foundation.clock import Clock
from inference.completion.variant import Variant
from inference.context.prompt.model_formats.chat_template import ChatTemplate
from inference.context.prompt.model_formats.edit_formats import get_edit_format
from inference.context.prompt.model_formats.layout import (
    DEFAULT_LAYOUT,
    PromptLayout,
    ends_with_text,
    get_layout,
    resolve_markers,
    resolve_stop_token_ids,
)
from inference.context.prompt.model_formats.model_families import (
    FimOrder,
    ModelFamily,
    detect_family,
    get_family,
)
from inference.context.prompt.prompt_options import DEFAULT_PROMPT_OPTIONS, PromptOptions
from inference.context.prompt.token_budget import PROMPT_TOKENS
from inference.context.tokenization.line_cache import LineCache
from inference.context.tokenization.tokenized_lines import TokenizedLines
from inference.context.tokenization.tokenizer import Tokenizer
from inference.context.tokenization.ttl_cache import CachePartitions, TtlCache

_MAX_HEADER_TOKENS: Final = 64  # longer paths are truncated


class FileHeaders:
    """Encodes the headers that name the repository and its files in a prompt."""

    def __init__(self, family: ModelFamily, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._repository = _marker_ids(tokenizer, family.repository)
        self._separator = _marker_ids(tokenizer, family.file_separator)

    def encode_repository(self, name: str) -> list[int]:
        """Return the repository's header; empty if it has no name or the family has no marker."""
        return [*self._repository, *self._encode_line(name)] if name and self._repository else []

    def encode_file(self, path: str) -> list[int]:
        """Return the file's header; a comment `# PATH` if the family has no separator of files."""
        return (
            [*self._separator, *self._encode_line(path)]
            if self._separator
            else self._encode_line(f"# {path}")
        )

    def _encode_line(self, name: str) -> list[int]:
        return self._tokenizer.encode(" ".join(name.split()) + "\n")[:_MAX_HEADER_TOKENS]


def _marker_ids(tokenizer: Tokenizer, name: str | None) -> list[int]:
    token_id = tokenizer.get_token_id(name) if name else None
    return [] if token_id is None else [token_id]


EVICTION_INTERVAL_S: Final = 5.0  # an expired entry stays at most this much longer


# Ordinary code, to measure the characters per token of this tokenizer.
_SAMPLE: Final = "def read(self, path):\n    with open(path) as file:\n        return file.read()\n"
# Limits for all entries of one cache together. An encoded file has about 400 tokens, an entry with
# tokenized lines 1,500. A token takes 8 bytes if the line cache shares it, and 40 otherwise.
_MAX_ITEM_TOKENS: Final = 8_000_000
_MAX_LINE_WINDOW_TOKENS: Final = 8_000_000
_MAX_SCORES: Final = 200_000


class PromptWriter:
    """The parts that are needed to write the prompts of one pool, made once at startup."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        model: str,
        max_context_tokens: int,
        clock: Clock,
        options: PromptOptions = DEFAULT_PROMPT_OPTIONS,
        chat_template: ChatTemplate | None = None,
    ) -> None:
        """`chat_template` is the model's, if it has one.

        `max_context_tokens` limits prompt and completion together. `model` is the model's name.
        BadSetting means a tokenizer without known markers, or an unknown name in `options`. Raises
        BadSetting.
        """
        self.tokenizer = tokenizer
        self.partitions = CachePartitions()
        self.lines = LineCache(tokenizer, clock)
        # Caches of joined lines, of encoded files and headers, and of the similarities of files.
        self.line_windows = TtlCache[TokenizedLines](
            clock, max_weight=_MAX_LINE_WINDOW_TOKENS, weigh=_measure_weight
        )
        self.items = TtlCache[list[int]](
            clock, max_weight=_MAX_ITEM_TOKENS, weigh=lambda token_ids: 1 + len(token_ids)
        )
        self.scores = TtlCache[float](clock, max_weight=_MAX_SCORES)
        self.family = (
            get_family(options.family)
            if options.family
            else detect_family(tokenizer.get_token_id, model=model)
        )
        self.markers = resolve_markers(self.family, tokenizer)
        self.headers = FileHeaders(self.family, tokenizer)
        self.stop_token_ids = resolve_stop_token_ids(self.family, tokenizer)
        self.chat_template = chat_template
        self.edit_format = (
            None if options.edit_format is None else get_edit_format(options.edit_format)
        )
        self.max_context_tokens = max_context_tokens
        self.chars_per_token = len(_SAMPLE) / len(tokenizer.encode(_SAMPLE))
        self._budget_tokens = options.budget_tokens
        self._layout = get_layout(options.layout or DEFAULT_LAYOUT)
        self._has_token_healing = options.has_token_healing

    def evict_expired(self) -> None:
        """Evict expired entries of all caches. Call this periodically."""
        for cache in (self.lines, self.line_windows, self.items, self.scores):
            cache.evict_expired()

    def get_budget_tokens(self, tier: Tier) -> int:
        """Return the token budget of a prompt: the pool's own, or else the tier's."""
        return self._budget_tokens or PROMPT_TOKENS[tier]

    def get_layout(self, variant: Variant) -> PromptLayout:
        return get_layout(variant.layout) if variant.layout else self._layout

    def has_token_healing(self, order: FimOrder) -> bool:
        """Return whether the prompt ends before the word being typed.

        The model then writes the whole word. This is needed if the model continues the prefix
        directly: a partial word is tokenized differently from the start of the whole word. With the
        order EFIM this always applies, however the model was trained.
        """
        return order is FimOrder.EFIM or (
            self._has_token_healing and ends_with_text(order, self.family)
        )


def _measure_weight(lines: TokenizedLines) -> int:
    return len(lines.token_ids) + len(lines.starts) + len(lines.anchors)


async def evict_expired_forever(
    writers: Collection[PromptWriter], *, every_s: float = EVICTION_INTERVAL_S
) -> None:
    """Evict expired entries until cancelled."""
    while True:
        await asyncio.sleep(every_s)
        for writer in writers:
            writer.evict_expired()
