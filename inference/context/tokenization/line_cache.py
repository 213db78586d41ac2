"""A cache of tokenized lines, so that a keystroke tokenizes one line instead of all.

The rules of `ttl_cache` apply. Secrets are removed from a line before it is tokenized. So each line
is searched for secrets only once. The caller does not pass the line that the user is typing: this
line changes with each keystroke.
"""

from collections.abc import Sequence
from typing import Final

from detect_secrets.util.filetype import FileType

from caret.foundation.clock import Clock
from inference.context.redaction.redact import redact_lines
from inference.context.tokenization.tokenizer import Tokenizer
from inference.context.tokenization.ttl_cache import PartitionKey, TtlCache, compute_digest

# For all lines together; a token takes about 40 bytes.
MAX_TOKENS: Final = 4_000_000
_LINE_OVERHEAD_TOKENS: Final = 4  # memory that a line takes besides its tokens, in tokens


class LineCache:
    """The line cache of one model. Only one event loop may use it."""

    def __init__(self, tokenizer: Tokenizer, clock: Clock, *, max_tokens: int = MAX_TOKENS) -> None:
        self._tokenizer = tokenizer
        self._cache = TtlCache[list[int]](
            clock, max_weight=max_tokens, weigh=lambda line: _LINE_OVERHEAD_TOKENS + len(line)
        )

    def evict_expired(self) -> None:
        self._cache.evict_expired()

    def encode(
        self, lines: Sequence[str], partition: PartitionKey, file_type: FileType
    ) -> list[list[int]]:
        """Return the tokens of each line without its secrets.

        `lines` come from `Tokenizer.split_lines`.
        """
        # The digest depends on the file type: the same line may have other secrets in another type.
        # `compute_digest` accepts a kind of entry of at most 16 bytes.
        entry_kind = file_type.name[:16].encode()

        def compute(missing_indexes: list[int]) -> list[list[int]]:
            return self._tokenizer.encode_lines(
                redact_lines([lines[index] for index in missing_indexes], file_type)
            )

        digests = [compute_digest(line, partition, entry_kind) for line in lines]
        return self._cache.get_or_compute_many(digests, compute, partition=partition)
