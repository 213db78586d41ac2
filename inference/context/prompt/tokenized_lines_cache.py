"""Passages of one holder's texts, made once while they stay as they are.

Between two keystrokes the lines above and below the cursor's are the same: they are found under one
digest of them all. Where one of them has changed, the others are found in the line cache.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from detect_secrets.util.filetype import FileType

from inference.context.prompt.prompt_writer import PromptWriter
from inference.context.tokenization.tokenized_lines import TokenizedLines, join_lines
from inference.context.tokenization.ttl_cache import Digest, PartitionKey, digest

_MIN_STEP_TOKENS: Final = 64


class TokenizedLinesCache:
    def __init__(self, writer: PromptWriter, holder: PartitionKey) -> None:
        self._writer = writer
        self._holder = holder

    def get_last_lines(self, text: str, kind: FileType, *, max_tokens: int) -> TokenizedLines:
        """Of the text's end, all lines that may fit."""

        def make() -> TokenizedLines:
            lines = self._writer.tokenizer.split_lines(text)
            encoded = self._encode_enough(lines, kind, max_tokens, step=-1)
            return join_lines(lines[len(lines) - len(encoded) :], encoded)

        key = self._make_key("last", text, kind, max_tokens)
        return self._writer.line_windows.get_or_compute(key, make, holder=self._holder)

    def get_first_lines(self, text: str, kind: FileType, *, max_tokens: int) -> TokenizedLines:
        """Of the text's beginning, all lines that may fit."""

        def make() -> TokenizedLines:
            lines = self._writer.tokenizer.split_lines(text)
            encoded = self._encode_enough(lines, kind, max_tokens, step=1)
            return join_lines(lines[: len(encoded)], encoded)

        key = self._make_key("first", text, kind, max_tokens)
        return self._writer.line_windows.get_or_compute(key, make, holder=self._holder)

    def _make_key(self, end: str, text: str, kind: FileType, max_tokens: int) -> Digest:
        return digest(text, self._holder, f"{end} {kind.value} {max_tokens}".encode())

    def _encode_enough(
        self, lines: Sequence[str], kind: FileType, max_tokens: int, *, step: int
    ) -> list[list[int]]:
        """The tokens of the first lines (`step` -1: the last), of those that fit and of a few more.
        Not of all at once, because what is not shown need not be encoded."""
        ordered = lines[::step]
        ends = list(accumulate(map(len, ordered), initial=0))
        encoded: list[list[int]] = []
        room = max_tokens
        while room >= 0 and len(encoded) < len(lines):
            start = len(encoded)
            num_chars = max(room, _MIN_STEP_TOKENS) * self._writer.chars_per_token
            end = max(start + 1, bisect_left(ends, ends[start] + num_chars))
            part = ordered[start:end][::step]  # as they stand in the text
            encoded += self._writer.lines.encode(part, self._holder, kind)[::step]
            room -= sum(map(len, encoded[start:]))
        return _needed(encoded, max_tokens, step=step)[::step]


def _needed(encoded: list[list[int]], max_tokens: int, *, step: int) -> list[list[int]]:
    """Of lines, the nearest to the cursor first, one token more than fits: enough to see that the
    farthest does not. A line of which a part is kept is longer than any window that looks at it."""
    spare = sum(map(len, encoded)) - max(0, max_tokens) - 1
    needed = list(encoded)
    while needed and spare >= len(needed[-1]):
        spare -= len(needed.pop())
    if needed and spare > 0:
        farthest = needed[-1]
        needed[-1] = farthest[spare:] if step < 0 else farthest[: len(farthest) - spare]
    return needed
