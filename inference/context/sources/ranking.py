"""Ranks the other files by the `ranking` of the experiment variant. Pure.

Recency: most recently edited first, as the client sent them. Similarity: by words in common with
the lines before the cursor, as the Jaccard index of the best window of 60 lines (like Copilot).
Equally similar files stay in order of recency.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from itertools import islice
from typing import Final

from caret.contracts.retrieval import MAX_FILE_CHARS
from inference.completion.incoming_request import ContextFile
from inference.completion.snippet import Snippet
from inference.context.sources.outline import head_of
from inference.context.tokenization.text_window import last_stable_lines

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
    known = frozenset[str]().union(*map(_line_set, shown))

    @cache  # several snippets may be of one file
    def lines_sent(path: str) -> frozenset[str] | None:
        text = sent.get(path)
        return None if text is None or len(text) > MAX_FILE_CHARS else _line_set(text)

    for snippet in snippets:
        lines = _line_set(snippet.text)
        now = lines_sent(snippet.path)
        is_outdated = now is not None and not _is_mostly(lines, now)
        if not is_outdated and not _is_mostly(lines, known):
            yield snippet


def _is_mostly(lines: frozenset[str], known: frozenset[str]) -> bool:
    telling = [line for line in lines if len(line) >= _TELLING_CHARS]
    return sum(line in known for line in telling) >= _MOST * len(telling)


def _line_set(text: str) -> frozenset[str]:
    """Return the lines without indentation: code that was moved into another block is the same."""
    return frozenset(map(str.strip, text.splitlines()))


WINDOW_LINES: Final = 60
_WORD: Final = re.compile(r"[^\W\d_]{3,}")  # also parts of identifiers: load_file is two words

Score = Callable[[ContextFile, str], float]  # of a file and the lines near the cursor


class Ranking(StrEnum):
    RECENCY = "recency"
    SIMILARITY = "similarity"


def rank(
    files: Sequence[ContextFile], ranking: Ranking, prefix: str, score: Score
) -> Sequence[ContextFile]:
    """Return the files, best first."""
    if ranking is Ranking.RECENCY or len(files) < 2:
        return files
    # Uses stable lines only: the order must not change while a line is typed, for the prefix cache.
    near = last_stable_lines(prefix, num_lines=WINDOW_LINES)
    scores = {id(file): score(file, near) for file in files}
    return sorted(files, key=lambda file: -scores[id(file)])


def similarity(file: ContextFile, near: str) -> float:
    """Return the similarity, 0 to 1."""
    wanted = words(near)
    return max(
        (_jaccard_similarity(wanted, words(window)) for window in _iterate_windows(file.text)),
        default=0.0,
    )


def words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _iterate_windows(text: str) -> Iterator[str]:
    """Yield windows of the file's head that overlap by half."""
    lines = head_of(text).splitlines()
    for start in range(0, max(1, len(lines) - WINDOW_LINES // 2), WINDOW_LINES // 2):
        yield "\n".join(islice(lines, start, start + WINDOW_LINES))


def _jaccard_similarity(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 0.0
