"""A prefilter that selects the lines that may contain a secret, by searching all lines at once.

The rules of `redact` take some microseconds per line, so they are applied only to selected lines.
A rule can only match a line with one of certain texts: the first letters of a token, a part of a
name, or a long run of characters. A line without any of these texts contains no secret. Tests check
this for all rules.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final


def _compile_patterns(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, patterns))


# Text of high entropy before a quote. An entropy above the library's limits (4.5 bits in Base64, 3
# bits in hexadecimal) needs at least 23 different characters (2^4.5 is 22.6), or more than 8
# hexadecimal digits (2^3 is 8).
_RANDOM: Final = r"""(?:[A-Za-z0-9+/\\_=-]{23,}|[0-9A-Fa-f]{9,})["']"""
# Case-sensitive, in this order: Artifactory, AWS, Azure and Twilio, JSON Web Tokens, npm, GitHub,
# GitLab, OpenAI, PyPI, SendGrid and Twilio, Square, Stripe, Mailchimp, URLs (which may contain
# passwords), tokens of Discord and Telegram, and quoted text of high entropy. Each expression
# begins with a literal, for which `re` searches first. That takes 3 us for 7 KB; one combined
# expression would take 150 us.
_CASE_SENSITIVE: Final = _compile_patterns(
    r"A(?:3T|BIA|C|KC|KIA|P|SIA|ccountKey)",
    *("eyJ", "_authToken", "gh[oprsu]_"),
    *("gl(?:agent|cbt|dt|ft|imt|oas|pat|ptt|rt|soat)-", "GR1348941"),
    *("T3BlbkFJ", "pypi-AgE", r"S(?:G\.|K)", "sq0csp-", "k_live_", "-us", "://"),
    *(r"\.[\w-]{6}\.[\w-]{27}", r":[0-9A-Za-z_-]{35}", f'"{_RANDOM}', f"'{_RANDOM}"),
)
# Case-insensitive: names of passwords and of cloud keys, and Slack's tokens.
_CASE_INSENSITIVE: Final = _compile_patterns(
    "key", "p(?:ass|w)", "secret", "contrase", "token", "xox"
)


def find_suspect_lines(lines: Sequence[str]) -> list[int]:
    """Return the indexes of lines that may contain a secret, ascending."""
    indexes = {*_find_matching_lines(lines, _CASE_SENSITIVE)}
    indexes.update(_find_matching_lines([line.casefold() for line in lines], _CASE_INSENSITIVE))
    return sorted(indexes)


def _find_matching_lines(
    lines: Sequence[str], expressions: Iterable[re.Pattern[str]]
) -> Iterator[int]:
    text = "\n".join(lines)
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    for expression in expressions:
        for match in expression.finditer(text):
            yield bisect_right(starts, match.start()) - 1
