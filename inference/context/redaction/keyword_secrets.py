"""What is assigned to a name such as `password`: the library's rules for it, in linear time.

The library's expressions try each name in a word and give the rest of the word back letter by
letter: a line that repeats a name takes time that grows with its third power (400 ms at 2,000
characters). What follows the word is the same whichever name stands in it, so the first one is
enough, and the word is not given back. A test holds both to the same finds.
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

# Every name in the library's list holds one of these; a test says so.
NAME_HINTS: Final = ("key", "pass", "pwd", "secret", "contrase")
_NAMES: Final = re.compile("|".join(DENYLIST), re.IGNORECASE)
# As the library's, with its groups; as long as the word before the name that it looks for.
_WORD: Final = rf"(?>\w*?({'|'.join(DENYLIST)}))\w*+"
_WORD_AT_START: Final = rf"(?<!\w){_WORD}"
# The library's, without its looks ahead at text that may as well be absent.
_QUOTED: Final = r"(?=\w)[^\v\'\"]*[^\v,\'\"`]"
_REFERENCE: Final = re.compile(r"(?::=?|[!=]{1,3})\s*+[\w.-]++[\[(][^\v]*[\])]")
_MAX_REFERENCE_CHARS: Final = 1_000  # the library's
# To the rules a backtick both ends a secret and may stand in one, so each is tried as the end of
# what each other begins. A line with more of them is looked at in overlapping slices; a slice
# that names a secret among more than anybody writes is one.
_BACKTICK: Final = "`"
_MAX_BACKTICKS: Final = 8
_SLICE_CHARS: Final = 200
_MAX_SLICE_BACKTICKS: Final = 32


def may_contain_keyword(line: str) -> bool:
    """Whether a name of the library's list may stand in it: a tenth of the time of their search."""
    lowered = line.lower()
    return any(hint in lowered for hint in NAME_HINTS)


def find_keyword_secrets(line: str, kind: FileType) -> Iterator[tuple[int, int]]:
    """Where it stands, unless it is plainly no secret. Spans may overlap."""
    if not may_contain_keyword(line) or not _NAMES.search(line) or is_indirect_reference(line):
        return
    if line.count(_BACKTICK) <= _MAX_BACKTICKS:
        yield from _spans(line, kind)
        return
    for start in range(0, len(line), _SLICE_CHARS // 2):
        part = line[start : start + _SLICE_CHARS]
        for first, end in _spans_of_slice(part, kind):
            yield start + first, start + end


def is_indirect_reference(line: str) -> bool:
    """Return whether something is assigned that is called or indexed: `secret = get_secret()`.

    The library's rule without what may as well be empty before the assignment: with it, a line of
    1,000 blanks takes seconds.
    """
    return len(line) <= _MAX_REFERENCE_CHARS and _REFERENCE.search(line) is not None


def _spans_of_slice(part: str, kind: FileType) -> Iterable[tuple[int, int]]:
    if not _NAMES.search(part):
        return ()
    if part.count(_BACKTICK) > _MAX_SLICE_BACKTICKS:
        return [(0, len(part))]
    return _spans(part, kind)


def _spans(line: str, kind: FileType) -> Iterator[tuple[int, int]]:
    for regex, group in _RULES.get(kind, _QUOTES_REQUIRED).items():
        match = regex.search(line)
        if match and not (
            heuristic.is_templated_secret(match[group])
            or heuristic.is_not_alphanumeric_string(match[group])
            or heuristic.is_prefixed_with_dollar_sign(match[group])
        ):
            yield match.span(group)


def linearize(regex: re.Pattern[str]) -> re.Pattern[str]:
    """The library's expression with its names found once a word. Raises ValueError when it has
    none: then the library has changed."""
    if DENYLIST_REGEX_WITH_PREFIX in regex.pattern:
        pattern = regex.pattern.replace(DENYLIST_REGEX_WITH_PREFIX, _WORD)
    elif regex.pattern.startswith(DENYLIST_REGEX):
        pattern = _WORD_AT_START + regex.pattern.removeprefix(DENYLIST_REGEX)
    else:
        raise ValueError(regex.pattern)
    return re.compile(pattern.replace(SECRET, _QUOTED), regex.flags)


def _linear_rules(rules: Mapping[re.Pattern[str], int]) -> dict[re.Pattern[str], int]:
    return {linearize(regex): group for regex, group in rules.items()}


_QUOTES_REQUIRED: Final = _linear_rules(QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP)
_RULES: Final = {kind: _linear_rules(rules) for kind, rules in REGEX_BY_FILETYPE.items()}
