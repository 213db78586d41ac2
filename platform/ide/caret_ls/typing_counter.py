"""How many characters are typed by hand, by language: what suggestions are held against. Pure."""

from collections import Counter
from typing import Final

from caret_ls.text_document import TextEdit

EVERY_S: Final = 60.0  # between two tellings; the gateway takes one in ten seconds
MAX_LANGUAGES: Final = 16
MAX_CHARS: Final = 100_000
_MAX_TYPED_CHARS: Final = 2  # at once: a key, and a bracket that the editor closes


class TypingCount:
    def __init__(self) -> None:
        self._chars: Counter[str] = Counter()
        self._taken_s: float | None = None

    def add(self, language: str) -> None:
        """One more."""
        self._chars[language] += 1

    def take_due(self, now_s: float) -> dict[str, int] | None:
        """What was typed since the last time, once in a while; None: not now, or nothing."""
        if self._taken_s is None:
            self._taken_s = now_s
        if not self._chars or now_s - self._taken_s < EVERY_S:
            return None
        most = self._chars.most_common(MAX_LANGUAGES)
        self._chars.clear()
        self._taken_s = now_s
        return {language: min(chars, MAX_CHARS) for language, chars in most}


def is_typed(edit: TextEdit) -> bool:
    """By a key, as far as one can tell: no paste, nothing that a program has put in. Of a line
    break the indentation is the editor's."""
    is_break = edit.inserted.startswith(("\n", "\r")) and not edit.inserted.strip()
    is_short = 0 < len(edit.inserted) <= _MAX_TYPED_CHARS
    return edit.deleted <= 1 and (is_short or is_break)
