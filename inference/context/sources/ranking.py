"""Ranks the other files by the `ranking` of the experiment variant. Pure.

Recency: most recently edited first, as the client sent them. Similarity: by words in common with
the lines before the cursor, as the Jaccard index of the best window of 60 lines (like Copilot).
Equally similar files stay in order of recency.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from itertools import islice
from typing import Final

from inference.completion.incoming_request import ContextFile
from inference.context.sources.outline import head_of
from inference.context.tokenization.text_window import last_stable_lines

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
    return max((_jaccard(wanted, words(window)) for window in _windows(file.text)), default=0.0)


def words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _windows(text: str) -> Iterator[str]:
    """Yield windows of the file's head that overlap by half."""
    lines = head_of(text).splitlines()
    for start in range(0, max(1, len(lines) - WINDOW_LINES // 2), WINDOW_LINES // 2):
        yield "\n".join(islice(lines, start, start + WINDOW_LINES))


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 0.0
