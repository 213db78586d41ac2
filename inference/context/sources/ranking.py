"""Ranks the other files by the `ranking` of the experiment variant, and drops useless snippets.

Pure. The rankings:

- Recency: most recently edited first. The files of a request already have this order.
- Similarity: by words in common with the lines before the cursor, as the Jaccard index of the best
  window of 60 lines (like Copilot). Equally similar files stay in order of recency.
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

# A snippet counts as known if at least this share of its lines is known. A snippet has 10 to 60
# lines, and recent keystrokes changed less than a fifth of them.
_MIN_KNOWN_SHARE: Final = 0.8
# Shorter lines are blank or brackets, which all code has in common.
_MIN_LINE_CHARS: Final = 4


def drop_useless_snippets(
    snippets: Sequence[Snippet], *, prompt_texts: Iterable[str], open_files: Mapping[str, str]
) -> Iterator[Snippet]:
    """Yield the snippets in the same order, except duplicates and outdated ones.

    A duplicate is in `prompt_texts`. A snippet is outdated if its file no longer has its text.

    `open_files` are the other files of the request by path. The prompt has at most an outline of a
    long file, so a snippet of such a file may be useful. Files that are too long for the index are
    not compared: splitting megabytes into lines takes too long.
    """
    if not snippets:
        return
    prompt_lines = frozenset[str]().union(*map(_line_set, prompt_texts))

    @cache  # several snippets may come from one file
    def current_lines_of(path: str) -> frozenset[str] | None:
        text = open_files.get(path)
        return None if text is None or len(text) > MAX_FILE_CHARS else _line_set(text)

    for snippet in snippets:
        lines = _line_set(snippet.text)
        current_lines = current_lines_of(snippet.path)
        is_outdated = current_lines is not None and not _is_mostly_known(lines, current_lines)
        if not is_outdated and not _is_mostly_known(lines, prompt_lines):
            yield snippet


def _is_mostly_known(lines: frozenset[str], known_lines: frozenset[str]) -> bool:
    """Return whether most lines are known. True if all lines are too short to be compared."""
    significant_lines = [line for line in lines if len(line) >= _MIN_LINE_CHARS]
    num_known = sum(line in known_lines for line in significant_lines)
    return num_known >= _MIN_KNOWN_SHARE * len(significant_lines)


def _line_set(text: str) -> frozenset[str]:
    """Return the lines without indentation: code that was moved into another block is equal."""
    return frozenset(map(str.strip, text.splitlines()))


WINDOW_LINES: Final = 60  # of the files that are compared, and before the cursor
_WORD: Final = re.compile(r"[^\W\d_]{3,}")  # also parts of identifiers: load_file is two words

# Returns the score of a file, given the lines near the cursor.
ScoreFile = Callable[[ContextFile, str], float]


class Ranking(StrEnum):
    RECENCY = "recency"
    SIMILARITY = "similarity"


def rank(
    files: Sequence[ContextFile], ranking: Ranking, prefix: str, score_file: ScoreFile
) -> Sequence[ContextFile]:
    """Return the files, best first. `files` are sorted by recency."""
    if ranking is Ranking.RECENCY or len(files) < 2:
        return files
    # Uses stable lines only: the order must not change while a line is typed, for the prefix cache.
    nearby_text = last_stable_lines(prefix, num_lines=WINDOW_LINES)
    return sorted(files, key=lambda file: -score_file(file, nearby_text))


def measure_similarity(file: ContextFile, nearby_text: str) -> float:
    """Return the similarity, 0 to 1."""
    near_words = _find_words(nearby_text)
    return max(
        (
            _jaccard_similarity(near_words, _find_words(window))
            for window in _iterate_windows(file.text)
        ),
        default=0.0,
    )


def _find_words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _iterate_windows(text: str) -> Iterator[str]:
    """Yield windows of the file's head that overlap by half."""
    lines = head_of(text).splitlines()
    for start in range(0, max(1, len(lines) - WINDOW_LINES // 2), WINDOW_LINES // 2):
        yield "\n".join(islice(lines, start, start + WINDOW_LINES))


def _jaccard_similarity(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / len(first | second) if first or second else 0.0
