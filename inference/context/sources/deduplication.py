"""Drops snippets whose text the prompt contains already. Pure.

The index lags behind the editor, and files are renamed and copied. Texts are therefore compared by
their lines, at any position. Most lines of a snippet are enough to recognize it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from caret.contracts.retrieval import MAX_FILE_CHARS
from inference.completion.snippet import Snippet

# Of a snippet's lines. A chunk has 10 to 60 of them; recent keystrokes changed fewer.
_MOST: Final = 0.8
# Shorter lines are blank or brackets, which all code has in common.
_TELLING_CHARS: Final = 4


def drop_duplicates(
    snippets: Sequence[Snippet], *, shown: Iterable[str], sent: Mapping[str, str]
) -> Iterator[Snippet]:
    """Yield the remaining snippets in the same order.

    Dropped are snippets whose text is in `shown`, and those whose text the file no longer has.

    `shown` are the texts in the prompt. `sent` are the current other files of the request by path.
    The prompt has at most an outline of the long ones, so a part of such a file may be useful.
    Files that are too long for the index are skipped: splitting megabytes into lines takes too
    long.
    """
    if not snippets:
        return
    known = frozenset[str]().union(*map(_lines, shown))

    @cache  # several snippets may be of one file
    def lines_sent(path: str) -> frozenset[str] | None:
        text = sent.get(path)
        return None if text is None or len(text) > MAX_FILE_CHARS else _lines(text)

    for snippet in snippets:
        lines = _lines(snippet.text)
        now = lines_sent(snippet.path)
        is_outdated = now is not None and not _is_mostly(lines, now)
        if not is_outdated and not _is_mostly(lines, known):
            yield snippet


def _is_mostly(lines: frozenset[str], known: frozenset[str]) -> bool:
    telling = [line for line in lines if len(line) >= _TELLING_CHARS]
    return sum(line in known for line in telling) >= _MOST * len(telling)


def _lines(text: str) -> frozenset[str]:
    """Return the lines without indentation: code that was moved into another block is the same."""
    return frozenset(map(str.strip, text.splitlines()))
