"""Cached tokenized lines of one cache partition, found by the digest of their whole text.

Between two keystrokes, the lines above and below the cursor usually do not change, so one digest
finds the tokens of all of them. If a line has changed, the other lines are still in the line cache.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from detect_secrets.util.filetype import FileType

from inference.context.prompt.prompt_writer import PromptWriter
from inference.context.tokenization.tokenized_lines import TokenizedLines, join_lines
from inference.context.tokenization.ttl_cache import Digest, PartitionKey, compute_digest

_MIN_BATCH_TOKENS: Final = 64  # of lines that are encoded together


class TokenizedLinesCache:
    def __init__(self, writer: PromptWriter, partition: PartitionKey) -> None:
        self._writer = writer
        self._partition = partition

    def get_last_lines(self, text: str, kind: FileType, *, max_tokens: int) -> TokenizedLines:
        """Return the lines at the end of the text that may fit into `max_tokens`."""

        def compute() -> TokenizedLines:
            lines = self._writer.tokenizer.split_lines(text)
            encoded = self._encode_enough(lines, kind, max_tokens, step=-1)
            return join_lines(lines[len(lines) - len(encoded) :], encoded)

        digest = self._compute_digest("last", text, kind, max_tokens)
        return self._writer.line_windows.get_or_compute(digest, compute, partition=self._partition)

    def get_first_lines(self, text: str, kind: FileType, *, max_tokens: int) -> TokenizedLines:
        """Return the lines at the beginning of the text that may fit into `max_tokens`."""

        def compute() -> TokenizedLines:
            lines = self._writer.tokenizer.split_lines(text)
            encoded = self._encode_enough(lines, kind, max_tokens, step=1)
            return join_lines(lines[: len(encoded)], encoded)

        digest = self._compute_digest("first", text, kind, max_tokens)
        return self._writer.line_windows.get_or_compute(digest, compute, partition=self._partition)

    def _compute_digest(self, side: str, text: str, kind: FileType, max_tokens: int) -> Digest:
        return compute_digest(text, self._partition, f"{side} {kind.value} {max_tokens}".encode())

    def _encode_enough(
        self, lines: Sequence[str], kind: FileType, max_tokens: int, *, step: int
    ) -> list[list[int]]:
        """Encode the lines that fit, and one more token.

        `step` is 1 for the first lines of the text, and -1 for the last ones. The result has the
        order of the text. Lines are encoded in batches, so that most lines that do not fit are not
        encoded.
        """
        lines_in_order = lines[::step]  # nearest to the cursor first
        ends = list(accumulate(map(len, lines_in_order), initial=0))  # in characters
        encoded: list[list[int]] = []  # the tokens of each line, in the order of `lines_in_order`
        remaining_tokens = max_tokens
        while remaining_tokens >= 0 and len(encoded) < len(lines):
            start = len(encoded)
            num_chars = max(remaining_tokens, _MIN_BATCH_TOKENS) * self._writer.chars_per_token
            end = max(start + 1, bisect_left(ends, ends[start] + num_chars))
            batch = lines_in_order[start:end][::step]  # in text order
            encoded += self._writer.lines.encode(batch, self._partition, kind)[::step]
            remaining_tokens -= sum(map(len, encoded[start:]))
        return _take_needed_lines(encoded, max_tokens, step=step)[::step]


def _take_needed_lines(encoded: list[list[int]], max_tokens: int, *, step: int) -> list[list[int]]:
    """Return lines with `max_tokens` and one more token, or all lines if they have fewer tokens.

    `encoded` and the result start with the line nearest to the cursor.

    The additional token shows callers that the farthest line does not fit. If the farthest line is
    truncated here, no caller needs the tokens that it loses.
    """
    excess = sum(map(len, encoded)) - max(0, max_tokens) - 1
    needed = list(encoded)
    while needed and excess >= len(needed[-1]):
        excess -= len(needed.pop())
    if needed and excess > 0:
        farthest = needed[-1]
        needed[-1] = farthest[excess:] if step < 0 else farthest[: len(farthest) - excess]
    return needed
