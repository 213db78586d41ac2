"""Detects secrets in generated lines, also while a line is still growing.

The same rules remove secrets from prompts (`inference.context.redaction.redact`).
"""

import re
from collections.abc import Iterator
from typing import Final

from detect_secrets.plugins.keyword import DENYLIST
from detect_secrets.plugins.private_key import PrivateKeyDetector
from detect_secrets.util.filetype import FileType

from inference.context.redaction.keyword_secrets import may_contain_keyword
from inference.context.redaction.redact import (
    LONG_RUN_CHARS,
    SHORT_RUN_CHARS,
    redact_lines,
)

_KEY_HEADERS: Final = tuple(header.pattern for header in PrivateKeyDetector.denylist)
# A name such as `password` and the text up to the first character of the value assigned to it. Only
# the first keyword in a word is matched: the text after the word is the same for each keyword.
_NAMED: Final = re.compile(
    rf"(?<!\w)(?>\w*?(?:{'|'.join(DENYLIST)}))\w*+\W{{0,6}}?[=:(>][^)\]\w]*+", re.IGNORECASE
)
# A possible token is a run of characters with a digit, a long run, a URL up to its password, or the
# header of a private key. Names in code are short runs without a digit, so they are not held back.
# The whole run is matched and then checked for a digit, because a lookahead from each character
# would take quadratic time. The group is not possessive: with a possessive group, `re` of Python
# 3.11 skipped the header in some tests.
_HEADER: Final = "-----BEGIN"
_POSSIBLE_TOKEN: Final = re.compile(
    rf"(?:(?!{_HEADER})[\w+/=.-]){{{SHORT_RUN_CHARS},}}|://[^\s/:]++:[^\s/@]*+|{_HEADER}[A-Z ]*+"
)
_NOT_RUNS: Final = (":", _HEADER)  # the beginnings of matches that are not runs of characters
_LONG_RUN: Final = re.compile(rf"[A-Za-z0-9+/=]{{{LONG_RUN_CHARS},}}+")
_DIGIT: Final = re.compile(r"\d")


def contains_secret(line: str, kind: FileType) -> bool:
    has_key_header = "PRIVATE KEY" in line and any(header in line for header in _KEY_HEADERS)
    return has_key_header or redact_lines([line], kind) != [line]


def find_pending_secret(line: str, kind: FileType) -> int | None:
    """Return the index in a growing line at which a secret begins or may begin; None: nowhere."""
    name_match = _NAMED.search(line) if may_contain_keyword(line) else None
    starts = [name_match.end()] if name_match is not None else []
    tokens = list(_find_tokens(line))
    if tokens and contains_secret(line, kind):
        starts.append(tokens[0][0])  # any of the tokens may be the secret
    elif tokens and tokens[-1][1] == len(line):
        starts.append(tokens[-1][0])  # the last token may still grow
    return min(starts, default=None)


def _find_tokens(line: str) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each possible token."""
    for match in _POSSIBLE_TOKEN.finditer(line):
        if match[0].startswith(_NOT_RUNS) or _DIGIT.search(match[0]):
            yield match.span()
        else:
            yield from (run.span() for run in _LONG_RUN.finditer(line, *match.span()))
