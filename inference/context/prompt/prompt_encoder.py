"""Encodes the texts of one request, each within its own limit, with the model's tokenizer.

Secrets are removed from all text except the cursor's line. Private keys are removed from this line,
too. Usually, windows begin at an anchor: a line that is chosen by its content (see `text_window`).
If the layout uses sliding windows, they move with the cursor instead. Some tokenizers have no split
points between lines: they encode each text in one piece, and their windows never slide.
"""

from typing import Final

from caret.foundation.parsing.parse import ParseBudget
from inference.completion.incoming_request import ContextFile, Definition
from inference.completion.snippet import Snippet
from inference.context.prompt.cursor_text import line_after
from inference.context.prompt.prompt_writer import PromptWriter
from inference.context.prompt.tokenized_lines_cache import TokenizedLinesCache
from inference.context.redaction.redact import (
    MAX_KEY_CHARS,
    file_type,
    redact_private_keys,
    redact_text,
)
from inference.context.sources.file_filter import is_context_file
from inference.context.sources.outline import MAX_OUTLINE_TOKENS, head_of, outline
from inference.context.sources.ranking import measure_similarity
from inference.context.tokenization.text_window import head, last_lines, tail
from inference.context.tokenization.tokenized_lines import PromptWindow
from inference.context.tokenization.ttl_cache import PartitionKey, compute_digest

# Comments and long names have this many times more characters per token than average.
_SPARSE_TEXT_FACTOR: Final = 1.5
MAX_PARSING_S: Final = 0.04  # for one request; an outline takes 2 to 4 ms


class PromptEncoder:
    def __init__(self, writer: PromptWriter, partition: PartitionKey, *, path: str) -> None:
        """`path` is that of the cursor's file."""
        self._writer = writer
        self._tokenizer = writer.tokenizer
        self._partition = partition
        # It redacts the secrets of all lines that it returns.
        self._lines_cache = TokenizedLinesCache(writer, partition)
        self._kind = file_type(path)  # of the cursor's file
        self._parse_budget = ParseBudget(total_s=MAX_PARSING_S)

    def encode_text(self, text: str) -> list[int]:
        return self._tokenizer.encode(text)

    def encode_before(self, text: str, *, max_tokens: int, is_anchored: bool) -> PromptWindow:
        """Encode the end of the text before the cursor.

        With `is_anchored`, the window begins at an anchor if possible. Without it, the window
        slides with the cursor, unless the tokenizer has no split points between lines. In the line
        being typed, only private keys are redacted.
        """
        max_chars = self._max_chars(max_tokens)
        excerpt = redact_private_keys(text[-(max_chars + MAX_KEY_CHARS) :])
        if not self._tokenizer.has_line_splits:
            excerpt = last_lines(excerpt, max_chars=max_chars)
            return PromptWindow(self._encode_before_in_one_piece(excerpt, max_tokens=max_tokens))
        start = (
            len(excerpt)
            if excerpt.endswith("\n")
            else self._tokenizer.find_last_line_start(excerpt)
        )
        # `current_line` is None if the excerpt ends with a line break, so that the cursor's line is
        # empty. Then `anchor` treats the finished line above it like the line being typed.
        # `current_line` is [] if there is no text at all.
        current_line = (
            self.encode_text(_take_end(excerpt[start:], max_chars))
            if start < len(excerpt) or not excerpt
            else None
        )
        # No other line fits before a current line of at least `max_chars`. Before a shorter one,
        # `room` does not depend on its length: the choice of stable lines must not change while the
        # user types this line.
        room = max_chars if len(excerpt) - start < max_chars else 0
        stable_lines = last_lines(excerpt[:start], max_chars=room) if room else ""
        lines = self._lines_cache.get_last_lines(stable_lines, self._kind, max_tokens=max_tokens)
        if not is_anchored:
            return lines.slide(current_line, max_tokens=max_tokens)
        # Nothing of the text before the current line was cut off.
        has_whole_text = len(stable_lines) == start and len(text) <= max_chars + MAX_KEY_CHARS
        return lines.anchor(current_line, max_tokens=max_tokens, is_whole=has_whole_text)

    def encode_after(self, text: str, *, max_tokens: int) -> list[int]:
        """Encode the beginning of the text after the cursor, in whole lines if possible.

        In the rest of the cursor's own line, only private keys are redacted.
        """
        max_chars = self._max_chars(max_tokens)
        excerpt = redact_private_keys(text[: max_chars + MAX_KEY_CHARS])
        if not self._tokenizer.has_line_splits:
            rest_of_line, newline, following = head(excerpt, max_chars=max_chars).partition("\n")
            safe = rest_of_line + newline + redact_text(following, self._kind)
            return self.encode_text(safe)[: max(0, max_tokens)]
        excerpt = head(excerpt, max_chars=max_chars)
        # If only white space follows the cursor in its line, there is no current line: the line's
        # end belongs to the following lines, which are encoded together and come from the cache.
        end = self._tokenizer.find_first_line_end(excerpt) if line_after(excerpt).strip() else 0
        current_line = self.encode_text(excerpt[:end]) if end else []
        lines = self._lines_cache.get_first_lines(excerpt[end:], self._kind, max_tokens=max_tokens)
        return lines.clip_beginning(current_line, max_tokens=max_tokens)

    def encode_file(self, file: ContextFile) -> list[int]:
        """Encode another file with its header; empty if it is not suitable as context.

        After the header come at most MAX_OUTLINE_TOKENS: the whole file if it is short, otherwise
        its outline. The head of the file replaces an outline that does not exist or that takes too
        long. The result is cached in any case, so that the prompt's beginning stays the same.
        """
        digest = compute_digest(f"{file.path}\0{file.text}", self._partition, b"file")
        return self._writer.items.get_or_compute(
            digest, lambda: self._encode_file(file), partition=self._partition
        )

    def encode_snippet(self, snippet: Snippet | Definition, *, max_tokens: int) -> list[int]:
        """Encode a snippet with its header; empty if it is not suitable as context."""
        if not is_context_file(snippet.path, snippet.text):
            return []
        body = self.encode_excerpt(snippet.path, snippet.text, max_tokens=max_tokens)
        return [*self.encode_header(snippet.path), *body]

    def encode_header(self, path: str) -> list[int]:
        """Encode the header of a file, or return it from the cache."""
        digest = compute_digest(path, self._partition, b"path")
        return self._writer.items.get_or_compute(
            digest, lambda: self._writer.headers.encode_file(path), partition=self._partition
        )

    def encode_repository(self, name: str) -> list[int]:
        digest = compute_digest(name, self._partition, b"repository")
        return self._writer.items.get_or_compute(
            digest, lambda: self._writer.headers.encode_repository(name), partition=self._partition
        )

    def encode_excerpt(self, path: str, text: str, *, max_tokens: int) -> list[int]:
        """Encode the beginning of another file's text."""
        excerpt = redact_private_keys(text[: self._max_chars(max_tokens)])
        if not self._tokenizer.has_line_splits:
            return self.encode_text(redact_text(excerpt, file_type(path)))[: max(0, max_tokens)]
        excerpt = excerpt if excerpt.endswith("\n") else excerpt + "\n"
        lines = self._lines_cache.get_first_lines(excerpt, file_type(path), max_tokens=max_tokens)
        return lines.clip_beginning([], max_tokens=max_tokens)

    def score_file(self, file: ContextFile, nearby_text: str) -> float:
        """Return the similarity of the file to `nearby_text`, cached while neither text changes."""
        # The path is not part of the digest, because the similarity does not depend on it.
        digest = compute_digest(f"{nearby_text}\0{file.text}", self._partition, b"similarity")
        return self._writer.scores.get_or_compute(
            digest, lambda: measure_similarity(file, nearby_text), partition=self._partition
        )

    def is_short(self, file: ContextFile) -> bool:
        """Return whether the file is short enough to be encoded whole, not as an outline."""
        return len(file.text) <= MAX_OUTLINE_TOKENS * self._writer.chars_per_token

    def select_nearby_text(self, prefix: str, suffix: str, *, max_tokens: int) -> tuple[str, str]:
        """Return the texts before and after the cursor, each as long as may fit in `max_tokens`."""
        max_chars = self._max_chars(max_tokens)
        return _take_end(prefix, max_chars), suffix[:max_chars]

    def _encode_file(self, file: ContextFile) -> list[int]:
        if not is_context_file(file.path, file.text):
            return []
        text = file.text if self.is_short(file) else self._outline_file(file) or head_of(file.text)
        body = self.encode_excerpt(file.path, text, max_tokens=MAX_OUTLINE_TOKENS)
        return [*self.encode_header(file.path), *body]

    def _outline_file(self, file: ContextFile) -> str:
        return outline(file.path, file.text, self._parse_budget)

    def _encode_before_in_one_piece(self, text: str, *, max_tokens: int) -> list[int]:
        """Encode in one piece, for tokenizers without split points between lines."""
        stable_lines, newline, current_line = text.rpartition("\n")
        safe = redact_text(stable_lines, self._kind) + newline + current_line
        expected_chars = int(max_tokens * self._writer.chars_per_token)
        token_ids = self.encode_text(tail(safe, max_chars=expected_chars))
        if len(token_ids) > max_tokens:
            # The text has more tokens per character than expected. Half of the text is used, so
            # that the window usually still begins at an anchor.
            token_ids = self.encode_text(tail(safe, max_chars=expected_chars // 2))
        return token_ids[-max_tokens:] if max_tokens > 0 else []

    def _max_chars(self, max_tokens: int) -> int:
        """Return the length to which a text is cut before it is encoded.

        Even sparse text of this length has about `max_tokens`.
        """
        return max(0, int(max_tokens * self._writer.chars_per_token * _SPARSE_TEXT_FACTOR))


def _take_end(text: str, num_chars: int) -> str:
    """Return the last characters. `text[-num_chars:]` would return the whole text for 0."""
    return text[max(0, len(text) - num_chars) :]
