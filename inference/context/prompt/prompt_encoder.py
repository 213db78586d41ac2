"""One request's texts to tokens, each within its own limit; exact, by the model's tokenizer.

Whatever is not being typed right now has lost its secrets. Windows begin with lines that are chosen
by their content (see `window`), unless the layout wants them to slide.
"""

from typing import Final

from caret.foundation.parsing.parse import ParseBudget
from inference.completion.incoming_request import ContextFile
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
from inference.context.sources.ranking import similarity
from inference.context.tokenization.text_window import head, last_lines, tail
from inference.context.tokenization.tokenized_lines import PromptWindow
from inference.context.tokenization.ttl_cache import PartitionKey, digest

# How many more characters than on average so many tokens may have: comments, long names.
_ROOMY: Final = 1.5
MAX_PARSING_S: Final = 0.04  # of one request; an outline takes 2 to 4 ms


class PromptEncoder:
    def __init__(self, writer: PromptWriter, holder: PartitionKey, *, path: str) -> None:
        """`path`: of the file in which the cursor stands."""
        self._writer = writer
        self._tokens = writer.tokenizer
        self._holder = holder
        self._passages = TokenizedLinesCache(writer, holder)
        self._kind = file_type(path)
        self._allowance = ParseBudget(total_s=MAX_PARSING_S)

    def encode_text(self, text: str) -> list[int]:
        return self._tokens.encode(text)

    def encode_before(self, text: str, *, max_tokens: int, is_anchored: bool) -> PromptWindow:
        """The end of the text before the cursor; its last line is as it was typed."""
        max_chars = self._max_chars(max_tokens)
        seen = redact_private_keys(text[-(max_chars + MAX_KEY_CHARS) :])
        if not self._tokens.has_line_splits:
            seen = last_lines(seen, max_chars=max_chars)
            return PromptWindow(self._encode_before_in_one_piece(seen, max_tokens=max_tokens))
        start = len(seen) if seen.endswith("\n") else self._tokens.find_last_line_start(seen)
        typed = (
            self.encode_text(seen[start:][-max_chars:]) if start < len(seen) or not seen else None
        )
        # Behind an endless line nothing is missing; and what is settled does not depend on how far
        # the last line was typed.
        room = max_chars if len(seen) - start < max_chars else 0
        settled = last_lines(seen[:start], max_chars=room) if room else ""
        passage = self._passages.get_last_lines(settled, self._kind, max_tokens=max_tokens)
        if not is_anchored:
            return passage.slide(typed, max_tokens=max_tokens)
        is_whole = len(settled) == start and len(text) <= max_chars + MAX_KEY_CHARS
        return passage.anchor(typed, max_tokens=max_tokens, is_whole=is_whole)

    def encode_after(self, text: str, *, max_tokens: int) -> list[int]:
        """The beginning of the text after the cursor, whole lines where possible; what stands on
        the cursor's own line is as it was typed."""
        max_chars = self._max_chars(max_tokens)
        seen = redact_private_keys(text[: max_chars + MAX_KEY_CHARS])
        if not self._tokens.has_line_splits:
            rest, newline, following = head(seen, max_chars=max_chars).partition("\n")
            safe = rest + newline + redact_text(following, self._kind)
            return self.encode_text(safe)[: max(0, max_tokens)]
        seen = head(seen, max_chars=max_chars)
        end = self._tokens.find_first_line_end(seen) if line_after(seen).strip() else 0
        typed = self.encode_text(seen[:end]) if end else []
        passage = self._passages.get_first_lines(seen[end:], self._kind, max_tokens=max_tokens)
        return passage.clip_beginning(typed, max_tokens=max_tokens)

    def encode_file(self, file: ContextFile) -> list[int]:
        """Another file under its path, empty when it is no context. In at most MAX_OUTLINE_TOKENS:
        whole if it is so short, else its outline, or its head where it has none (or no time is
        left for it; remembered like any other, so that the prompt's beginning stays as it is)."""
        key = digest(f"{file.path}\0{file.text}", self._holder, b"file")
        return self._writer.items.get_or_compute(
            key, lambda: self._encode_file(file), holder=self._holder
        )

    def encode_snippet(self, snippet: Snippet, *, max_tokens: int) -> list[int]:
        """Under its path, empty when it is no context."""
        if not is_context_file(snippet.path, snippet.text):
            return []
        body = self.encode_excerpt(snippet.path, snippet.text, max_tokens=max_tokens)
        return [*self.encode_header(snippet.path), *body]

    def encode_header(self, path: str) -> list[int]:
        """Of a file."""
        key = digest(path, self._holder, b"path")
        return self._writer.items.get_or_compute(
            key, lambda: self._writer.headers.encode_file(path), holder=self._holder
        )

    def encode_repository(self, name: str) -> list[int]:
        key = digest(name, self._holder, b"repository")
        return self._writer.items.get_or_compute(
            key, lambda: self._writer.headers.encode_repository(name), holder=self._holder
        )

    def encode_excerpt(self, path: str, text: str, *, max_tokens: int) -> list[int]:
        """The beginning of a text from elsewhere."""
        safe = redact_private_keys(text[: self._max_chars(max_tokens)])
        if not self._tokens.has_line_splits:
            return self.encode_text(redact_text(safe, file_type(path)))[: max(0, max_tokens)]
        text = safe if safe.endswith("\n") else safe + "\n"
        passage = self._passages.get_first_lines(text, file_type(path), max_tokens=max_tokens)
        return passage.clip_beginning([], max_tokens=max_tokens)

    def score_file(self, file: ContextFile, near: str) -> float:
        """Of `rank`; remembered for the while in which neither changes."""
        key = digest(f"{near}\0{file.text}", self._holder, b"similarity")
        return self._writer.scores.get_or_compute(
            key, lambda: similarity(file, near), holder=self._holder
        )

    def is_whole(self, file: ContextFile) -> bool:
        """Whether `file` shows all of it, not its outline."""
        return len(file.text) <= MAX_OUTLINE_TOKENS * self._writer.chars_per_token

    def select_nearby_text(self, prefix: str, suffix: str, *, max_tokens: int) -> tuple[str, str]:
        """Of the texts around the cursor what so many tokens may hold."""
        max_chars = self._max_chars(max_tokens)
        return prefix[-max_chars:], suffix[:max_chars]

    def _encode_file(self, file: ContextFile) -> list[int]:
        if not is_context_file(file.path, file.text):
            return []
        is_whole = self.is_whole(file)
        safe = file.text if is_whole else self._outline_file(file) or head_of(file.text)
        body = self.encode_excerpt(file.path, safe, max_tokens=MAX_OUTLINE_TOKENS)
        return [*self.encode_header(file.path), *body]

    def _outline_file(self, file: ContextFile) -> str:
        return outline(file.path, file.text, self._allowance)

    def _encode_before_in_one_piece(self, text: str, *, max_tokens: int) -> list[int]:
        """Of a tokenizer whose lines depend on each other: all in one piece."""
        settled, newline, typed = text.rpartition("\n")
        safe = redact_text(settled, self._kind) + newline + typed
        max_chars = int(max_tokens * self._writer.chars_per_token)
        token_ids = self.encode_text(tail(safe, max_chars=max_chars))
        if len(token_ids) > max_tokens:
            # Denser than the sample: half the text, so that the window still begins at an anchor.
            token_ids = self.encode_text(tail(safe, max_chars=max_chars // 2))
        return token_ids[-max_tokens:] if max_tokens > 0 else []

    def _max_chars(self, max_tokens: int) -> int:
        return max(0, int(max_tokens * self._writer.chars_per_token * _ROOMY))
