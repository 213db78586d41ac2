"""One request's texts to tokens, each within its own limit; exact, by the model's tokenizer.

Whatever is not being typed right now has lost its secrets. Windows begin with lines that are chosen
by their content (see `window`), unless the layout wants them to slide.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from detect_secrets.util.filetype import FileType

from inference.completion.arrival import DraftFile
from inference.completion.retrieved import Snippet
from inference.context.brief_memory import Holder, digest
from inference.context.exclude import is_context
from inference.context.outline import MAX_OUTLINE_TOKENS, head_of, outline
from inference.context.rank import similarity
from inference.context.redact import MAX_KEY_CHARS, file_type, redact_text, without_private_keys
from inference.context.window import MAX_GIVEN_UP, first_anchor, head, last_lines, tail
from inference.context.writer import PromptWriter

# How many more characters than on average so many tokens may have: comments, long names.
_ROOMY: Final = 1.5


@dataclass(frozen=True, slots=True)
class Window:
    """Lines and their tokens, in the order of the text."""

    lines: Sequence[str]
    token_ids: Sequence[list[int]]

    def flat(self, start: int = 0, end: int | None = None) -> list[int]:
        return list(chain.from_iterable(self.token_ids[start:end]))


class Encoder:
    def __init__(self, writer: PromptWriter, holder: Holder, *, path: str) -> None:
        """`path`: of the file in which the cursor stands."""
        self._writer = writer
        self._tokens = writer.tokens
        self._holder = holder
        self._kind = file_type(path)

    def plain(self, text: str) -> list[int]:
        return self._tokens.encode(text)

    def before(self, text: str, *, max_tokens: int, is_anchored: bool) -> Window:
        """The end of the text before the cursor; its last line is as it was typed."""
        max_chars = self._roomy(max_tokens)
        seen = without_private_keys(text[-(max_chars + MAX_KEY_CHARS) :])
        if not self._tokens.has_line_seams:
            seen = last_lines(seen, max_chars=max_chars)
            return self._unseamed_before(seen, max_tokens=max_tokens)
        lines = self._tokens.lines(last_lines(seen, max_chars=max_chars))
        num_typed = 0 if seen.endswith("\n") else 1
        window = Window(lines, self._encoded(lines, self._kind, range(len(lines) - num_typed)))
        start = _start_within(window, max_tokens)
        if start == len(lines) or not is_anchored:
            return _slid(window, start, max_tokens)
        if start > 0 or len(text) > max_chars:
            start = first_anchor(lines, start, _last_start(window, start))
        return Window(lines[start:], window.token_ids[start:])

    def after(self, text: str, *, max_tokens: int) -> list[int]:
        """The beginning of the text after the cursor, whole lines where possible; what stands on
        the cursor's own line is as it was typed."""
        max_chars = self._roomy(max_tokens)
        seen = without_private_keys(text[: max_chars + MAX_KEY_CHARS])
        if not self._tokens.has_line_seams:
            rest, newline, following = head(seen, max_chars=max_chars).partition("\n")
            safe = rest + newline + redact_text(following, self._kind)
            return self.plain(safe)[: max(0, max_tokens)]
        lines = self._tokens.lines(head(seen, max_chars=max_chars))
        num_typed = 1 if seen.partition("\n")[0].strip() else 0
        return _first_of(self._encoded(lines, self._kind, range(num_typed, len(lines))), max_tokens)

    def file(self, file: DraftFile) -> list[int]:
        """Another file under its path, empty when it is no context. In at most MAX_OUTLINE_TOKENS:
        whole if it is so short, else its outline, or its head where it has none."""
        key = digest(f"{file.path}\0{file.text}", self._holder, b"file")
        return self._writer.sources.one(key, lambda: self._file(file))

    def snippet(self, snippet: Snippet, *, max_tokens: int) -> list[int]:
        """Under its path, empty when it is no context."""
        if not is_context(snippet.path, snippet.text):
            return []
        body = self.excerpt(snippet.path, snippet.text, max_tokens=max_tokens)
        return [*self.header(snippet.path), *body]

    def header(self, path: str) -> list[int]:
        """Of a file."""
        key = digest(path, self._holder, b"path")
        return self._writer.sources.one(key, lambda: self._writer.headers.file(path))

    def repository(self, name: str) -> list[int]:
        key = digest(name, self._holder, b"repository")
        return self._writer.sources.one(key, lambda: self._writer.headers.repository(name))

    def excerpt(self, path: str, text: str, *, max_tokens: int) -> list[int]:
        """The beginning of a text from elsewhere."""
        safe = without_private_keys(text[: self._roomy(max_tokens)])
        if not self._tokens.has_line_seams:
            return self.plain(redact_text(safe, file_type(path)))[: max(0, max_tokens)]
        lines = self._tokens.lines(safe if safe.endswith("\n") else safe + "\n")
        encoded = self._encoded(lines, file_type(path), range(len(lines)))
        return _first_of(encoded, max_tokens)

    def score(self, file: DraftFile, near: str) -> float:
        """Of `rank`; remembered for the while in which neither changes."""
        key = digest(f"{near}\0{file.text}", self._holder, b"similarity")
        return self._writer.scores.one(key, lambda: similarity(file, near))

    def _file(self, file: DraftFile) -> list[int]:
        if not is_context(file.path, file.text):
            return []
        is_short = len(file.text) <= MAX_OUTLINE_TOKENS * self._writer.chars_per_token
        safe = file.text if is_short else outline(file.path, file.text) or head_of(file.text)
        body = self.excerpt(file.path, safe, max_tokens=MAX_OUTLINE_TOKENS)
        return [*self.header(file.path), *body]

    def _encoded(self, lines: list[str], kind: FileType, settled: range) -> list[list[int]]:
        """Lines outside of `settled` are being typed: no secrets are sought, nothing is kept."""
        return [
            *self._tokens.encode_each(lines[: settled.start]),
            *self._writer.lines.encode(lines[settled.start : settled.stop], self._holder, kind),
            *self._tokens.encode_each(lines[settled.stop :]),
        ]

    def _unseamed_before(self, text: str, *, max_tokens: int) -> Window:
        """Of a tokenizer whose lines depend on each other: all in one piece."""
        settled, newline, typed = text.rpartition("\n")
        safe = redact_text(settled, self._kind) + newline + typed
        max_chars = int(max_tokens * self._writer.chars_per_token)
        token_ids = self.plain(tail(safe, max_chars=max_chars))
        if len(token_ids) > max_tokens:
            # Denser than the sample: half the text, so that the window still begins at an anchor.
            token_ids = self.plain(tail(safe, max_chars=max_chars // 2))
        return Window([safe], [token_ids[-max_tokens:] if max_tokens > 0 else []])

    def _roomy(self, max_tokens: int) -> int:
        return max(0, int(max_tokens * self._writer.chars_per_token * _ROOMY))


def _start_within(window: Window, max_tokens: int) -> int:
    """The first line from which on all fit."""
    start = len(window.lines)
    for token_ids in reversed(window.token_ids):
        max_tokens -= len(token_ids)
        if max_tokens < 0:
            break
        start -= 1
    return start


def _last_start(window: Window, start: int) -> int:
    """The line before which an anchored window begins: beyond it too much would be given up."""
    spare = int(MAX_GIVEN_UP * sum(map(len, window.token_ids[start:])))
    for place in range(start, len(window.lines)):
        spare -= len(window.token_ids[place])
        if spare < 0:
            return place
    return len(window.lines)


def _slid(window: Window, start: int, max_tokens: int) -> Window:
    """To the last token of room: a part of the line before as well."""
    lines, token_ids = list(window.lines[start:]), list(window.token_ids[start:])
    room = max_tokens - sum(map(len, token_ids))
    if start > 0 and room > 0:
        lines.insert(0, "")
        token_ids.insert(0, window.token_ids[start - 1][-room:])
    return Window(lines, token_ids)


def _first_of(encoded: Iterable[list[int]], max_tokens: int) -> list[int]:
    """Whole lines; of a first line that is too long, its beginning."""
    first: list[int] = []
    for token_ids in encoded:
        if len(first) + len(token_ids) > max_tokens:
            return first or token_ids[: max(0, max_tokens)]
        first += token_ids
    return first
