"""Which other files come first: the variants' `ranking`. Pure.

Recency: as the client sent them, most recently edited first. Similarity: by the words that they
share with the lines before the cursor, Jaccard's index of the best window of 60 lines (as Copilot
does it); files alike keep the order of their recency.
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
_WORD: Final = re.compile(r"[^\W\d_]{3,}")  # parts of identifiers, too: load_file is two words

Score = Callable[[ContextFile, str], float]  # of a file, beside the lines near the cursor


class Ranking(StrEnum):
    RECENCY = "recency"
    SIMILARITY = "similarity"


def rank(
    files: Sequence[ContextFile], ranking: Ranking, prefix: str, score: Score
) -> Sequence[ContextFile]:
    """Best first."""
    if ranking is Ranking.RECENCY or len(files) < 2:
        return files
    # Of settled lines: the order must not change while one is typed, for the prefix cache's sake.
    near = last_stable_lines(prefix, num_lines=WINDOW_LINES)
    scores = {id(file): score(file, near) for file in files}
    return sorted(files, key=lambda file: -scores[id(file)])


def similarity(file: ContextFile, near: str) -> float:
    """0 to 1."""
    wanted = words(near)
    return max((_jaccard(wanted, words(window)) for window in _windows(file.text)), default=0.0)


def words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _windows(text: str) -> Iterator[str]:
    """Halfway overlapping, of the file's head."""
    lines = head_of(text).splitlines()
    for start in range(0, max(1, len(lines) - WINDOW_LINES // 2), WINDOW_LINES // 2):
        yield "\n".join(islice(lines, start, start + WINDOW_LINES))


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 0.0
