"""A prefilter that selects the lines that may contain a secret, all lines in one pass.

The rules of `redact` take some microseconds per line, so they are applied only to selected lines.
Every rule needs some text to match: the first letters of a token, a part of a name, or a long run
of characters. Without any of these there is no secret. Tests check this for all rules.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final


def _compile_patterns(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, patterns))


# Case-sensitive: Artifactory, AWS, Azure and Twilio, JSON web tokens, npm, GitHub, GitLab, OpenAI,
# PyPI, SendGrid and Twilio, Square, Stripe, Mailchimp, and the text between a password and its
# host. Then tokens of Discord and Telegram, and quoted text of high entropy: 23 different
# characters, or more than 8 hexadecimal digits. Each expression begins with a literal, which `re`
# searches first: 3 us for 7 KB, where one combined expression takes 150.
_RANDOM: Final = r"""(?:[A-Za-z0-9+/\\_=-]{23,}|[0-9A-Fa-f]{9,})["']"""
_SPELT: Final = _compile_patterns(
    r"A(?:3T|BIA|C|KC|KIA|P|SIA|ccountKey)",
    *("eyJ", "_authToken", "gh[oprsu]_"),
    *("gl(?:agent|cbt|dt|ft|imt|oas|pat|ptt|rt|soat)-", "GR1348941"),
    *("T3BlbkFJ", "pypi-AgE", r"S(?:G\.|K)", "sq0csp-", "k_live_", "-us", "://"),
    *(r"\.[\w-]{6}\.[\w-]{27}", r":[0-9A-Za-z_-]{35}", f'"{_RANDOM}', f"'{_RANDOM}"),
)
# Case-insensitive: names of passwords and cloud keys, and Slack.
_FOLDED: Final = _compile_patterns("key", "p(?:ass|w)", "secret", "contrase", "token", "xox")


def find_suspect_lines(lines: Sequence[str]) -> list[int]:
    """Return the indexes of lines that may contain a secret, ascending."""
    indexes = {*_find_matching_lines(lines, _SPELT)}
    indexes.update(_find_matching_lines([line.casefold() for line in lines], _FOLDED))
    return sorted(indexes)


def _find_matching_lines(
    lines: Sequence[str], expressions: Iterable[re.Pattern[str]]
) -> Iterator[int]:
    together = "\n".join(lines)
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    for expression in expressions:
        for match in expression.finditer(together):
            yield bisect_right(starts, match.start()) - 1
