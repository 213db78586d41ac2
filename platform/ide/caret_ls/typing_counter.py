"""Counts manually typed characters by language. Pure.

The console compares them with the accepted characters: the metric `completed_code`.
"""

from collections import Counter
from typing import Final

from caret_ls.text_document import TextEdit

EVERY_S: Final = 60.0  # between two reports; the gateway accepts one in ten seconds
MAX_LANGUAGES: Final = 16  # in a report
MAX_CHARS: Final = 100_000  # of a language in a report
_MAX_TYPED_CHARS: Final = 2  # in one edit: a key, and a bracket that the editor closes


class TypingCount:
    def __init__(self) -> None:
        self._chars: Counter[str] = Counter()  # by language
        # Monotonic time of the last report, or of the first call of take_due; None: no call yet.
        self._last_report_s: float | None = None

    def add(self, language: str) -> None:
        """Count one typed character."""
        self._chars[language] += 1

    def take_due(self, now_s: float) -> dict[str, int] | None:
        """Return the number of characters by language since the last report, and count anew.

        None: no report is due, or nothing was typed.
        """
        if self._last_report_s is None:
            self._last_report_s = now_s
        if not self._chars or now_s - self._last_report_s < EVERY_S:
            return None
        most_typed = self._chars.most_common(MAX_LANGUAGES)
        self._chars.clear()
        self._last_report_s = now_s
        return {language: min(chars, MAX_CHARS) for language, chars in most_typed}


def is_typed(edit: TextEdit) -> bool:
    """Return whether an edit looks like a typed key, not like a paste or a program's edit.

    A typed key may replace one character. A line break counts as typed, together with the
    indentation that the editor adds after it.
    """
    is_break = edit.inserted.startswith(("\n", "\r")) and not edit.inserted.strip()
    is_short = 0 < len(edit.inserted) <= _MAX_TYPED_CHARS
    return edit.deleted <= 1 and (is_short or is_break)
