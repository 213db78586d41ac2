"""Secrets assigned to names with keywords such as `password`: detect-secrets' rules in linear time.

The library's expressions try each keyword in a word, and backtrack over the rest of the word letter
by letter. So a line that repeats a keyword takes cubic time (400 ms for 2,000 characters). The
expressions here match only the first keyword in a word, without backtracking. That is enough,
because the text after the word is the same for each keyword. A test checks that these expressions
find the same secrets as the library's. There are two differences. The library applies a rule only
once to a line. Here, a rule finds all secrets of a line: `connect(password="...", api_key="...")`.
The library also skips a line if any value in it is a call or an index, such as
`db = connect(password="...")`. Here, only this value is skipped, as in `password = read("...")`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from detect_secrets.filters import heuristic
from detect_secrets.plugins.keyword import (
    DENYLIST,
    DENYLIST_REGEX,
    DENYLIST_REGEX_WITH_PREFIX,
    QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP,
    REGEX_BY_FILETYPE,
    SECRET,
)
from detect_secrets.util.filetype import FileType

# Every keyword in the library's list contains one of these; a test checks this.
KEYWORD_HINTS: Final = ("key", "pass", "pwd", "secret", "contrase")
_KEYWORDS: Final = re.compile("|".join(DENYLIST), re.IGNORECASE)
# Like the library's expression, with its groups. It also matches the letters before the keyword.
_WORD: Final = rf"(?>\w*?({'|'.join(DENYLIST)}))\w*+"
_WORD_AT_START: Final = rf"(?<!\w){_WORD}"
# The library's expression for a secret value, without its lookaheads for optional text.
_VALUE: Final = r"(?=\w)[^\v\'\"]*[^\v,\'\"`]"
# An assignment whose value is a call or an index, up to the bracket.
_REFERENCE: Final = re.compile(r"(?::=?|[!=]{1,3})\s*+[\w.-]++[\[(]")
_MAX_REFERENCE_CHARS: Final = 1_000  # the library's limit for the length of the line
# In the rules, a backtick may both end a secret and be part of one. So `re` tries every pair of
# backticks, which takes quadratic time. Therefore a line with more than _MAX_BACKTICKS is split
# into slices that overlap by half. A slice with a keyword and more than _MAX_SLICE_BACKTICKS counts
# as a secret: nobody writes such text.
_BACKTICK: Final = "`"
_MAX_BACKTICKS: Final = 8
_SLICE_CHARS: Final = 200
_MAX_SLICE_BACKTICKS: Final = 32


def may_contain_keyword(line: str) -> bool:
    """Return whether the line may contain a keyword, in a tenth of the time of the full search."""
    lowered = line.lower()
    return any(hint in lowered for hint in KEYWORD_HINTS)


def find_keyword_secrets(line: str, kind: FileType) -> Iterator[tuple[int, int]]:
    """Yield the spans of probable secrets. Spans may overlap."""
    if not may_contain_keyword(line) or not _KEYWORDS.search(line):
        return
    if line.count(_BACKTICK) <= _MAX_BACKTICKS:
        yield from _find_spans(line, kind)
        return
    for start in range(0, len(line), _SLICE_CHARS // 2):
        part = line[start : start + _SLICE_CHARS]
        for first, end in _find_spans_in_slice(part, kind):
            yield start + first, start + end


def _find_spans_in_slice(part: str, kind: FileType) -> Iterable[tuple[int, int]]:
    if not _KEYWORDS.search(part):
        return ()
    if part.count(_BACKTICK) > _MAX_SLICE_BACKTICKS:
        return [(0, len(part))]
    return _find_spans(part, kind)


def _find_spans(line: str, kind: FileType) -> Iterator[tuple[int, int]]:
    for regex, group in _RULES.get(kind, _QUOTES_REQUIRED).items():
        for match in regex.finditer(line):
            if not (
                heuristic.is_templated_secret(match[group])
                or heuristic.is_not_alphanumeric_string(match[group])
                or heuristic.is_prefixed_with_dollar_sign(match[group])
                or _is_reference(line, *match.span(group), begin=match.start())
            ):
                yield match.span(group)


def _is_reference(line: str, start: int, end: int, *, begin: int) -> bool:
    """Return whether the value at `start` to `end` is a call or an index: `key = get_key("x")`.

    The keyword is at `begin`.
    """
    if len(line) > _MAX_REFERENCE_CHARS:
        return False
    reference = _REFERENCE.search(line, begin, end)
    if reference is None or reference.start() >= start:
        return False
    # As in the library's expression, a closing bracket must follow.
    return max(line.rfind(")"), line.rfind("]")) >= reference.end()


def linearize(regex: re.Pattern[str]) -> re.Pattern[str]:
    """Return the library's expression with a linear search for its keywords.

    Raises ValueError if the expression has no keywords, which means that the library has changed.
    """
    if DENYLIST_REGEX_WITH_PREFIX in regex.pattern:
        pattern = regex.pattern.replace(DENYLIST_REGEX_WITH_PREFIX, _WORD)
    elif regex.pattern.startswith(DENYLIST_REGEX):
        pattern = _WORD_AT_START + regex.pattern.removeprefix(DENYLIST_REGEX)
    else:
        raise ValueError(regex.pattern)
    return re.compile(pattern.replace(SECRET, _VALUE), regex.flags)


def _linear_rules(rules: Mapping[re.Pattern[str], int]) -> dict[re.Pattern[str], int]:
    return {linearize(regex): group for regex, group in rules.items()}


_QUOTES_REQUIRED: Final = _linear_rules(QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP)
_RULES: Final = {kind: _linear_rules(rules) for kind, rules in REGEX_BY_FILETYPE.items()}
