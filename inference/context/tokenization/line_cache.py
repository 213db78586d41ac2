"""Token ids of lines seen a short while ago, so that a keystroke tokenises one line and not all.

Under TtlCache's rules. A line that is not being typed has lost its secrets before it is
tokenised, so that they are looked for once a line as well.
"""

from collections.abc import Sequence
from typing import Final

from detect_secrets.util.filetype import FileType

from caret.foundation.clock import Clock
from inference.context.redaction.redact import redact_lines
from inference.context.tokenization.tokenizer import Tokenizer
from inference.context.tokenization.ttl_cache import PartitionKey, TtlCache, digest

# Of all lines together; about 40 bytes each.
MAX_TOKENS: Final = 4_000_000
_LINE_TOKENS: Final = 4  # what a line takes besides its tokens, as if it were tokens


class LineCache:
    """One event loop uses it."""

    def __init__(self, tokens: Tokenizer, clock: Clock, *, max_tokens: int = MAX_TOKENS) -> None:
        self._tokens = tokens
        self._memory = TtlCache[list[int]](
            clock, max_weight=max_tokens, weigh=lambda line: _LINE_TOKENS + len(line)
        )

    def evict_expired(self) -> None:
        self._memory.evict_expired()

    def encode(self, lines: Sequence[str], holder: PartitionKey, kind: FileType) -> list[list[int]]:
        """Each line's tokens, without its secrets; `lines` as Tokens.lines cuts them."""
        # As far as redaction goes: the same line has other secrets in another kind of file.
        person = kind.name[:16].encode()

        def make(places: list[int]) -> list[list[int]]:
            return self._tokens.encode_lines(redact_lines([lines[n] for n in places], kind))

        keys = [digest(line, holder, person) for line in lines]
        return self._memory.get_or_compute_many(keys, make, holder=holder)
