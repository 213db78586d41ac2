"""Which of what retrieval has found tells the model something that it is not told anyway. Pure.

An index is some edits behind the editor, and files are renamed and copied: so texts are compared by
their lines, wherever those stand, and most of a snippet is enough to know it again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from caret.contracts.retrieval import MAX_FILE_CHARS
from inference.completion.snippet import Snippet

# Of a snippet's lines. A chunk has 10 to 60 of them: what the last few keystrokes changed is less.
_MOST: Final = 0.8
# A shorter line is blank or brackets, which all code shares.
_TELLING_CHARS: Final = 4


def drop_duplicates(
    snippets: Sequence[Snippet], *, shown: Iterable[str], sent: Mapping[str, str]
) -> Iterator[Snippet]:
    """In the same order, without those whose text is among `shown`, and those of a file that was
    sent and no longer has that text.

    `shown`: what the prompt holds. `sent`: the request's other files as they are now, by path; of
    long ones the prompt holds an outline at most, so that a part of one may well be worth showing.
    Those too long to be indexed are not looked at: splitting megabytes into lines takes too long.
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
    """Without indentation: what was moved into another block is still the same."""
    return frozenset(map(str.strip, text.splitlines()))
