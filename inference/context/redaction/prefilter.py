"""Which of many lines may hold a secret: a quick look at all of them at once, so that the rules of
`redact`, some microseconds a line, are asked about a few only.

Every rule has something that must be there for it to match: a token's first letters, a part of a
name, a long run of characters. Where none is, there is no secret. Tests hold the rules to it.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final


def _compiled(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, patterns))


# As they are spelt: Artifactory, AWS, Azure and Twilio, JSON web tokens, npm, GitHub, GitLab,
# OpenAI, PyPI, SendGrid and Twilio, Square, Stripe, Mailchimp, and what stands between a password
# and its host; then Discord's and Telegram's tokens; and quoted text of an entropy that takes 23
# different characters, or more than 8 digits of 16. Each begins with a letter of its own, which
# `re` looks for first: 3 us for 7 KB, where one expression for all of them takes 150.
_RANDOM: Final = r"""(?:[A-Za-z0-9+/\\_=-]{23,}|[0-9A-Fa-f]{9,})["']"""
_SPELT: Final = _compiled(
    r"A(?:3T|BIA|C|KC|KIA|P|SIA|ccountKey)",
    *("eyJ", "_authToken", "gh[oprsu]_"),
    *("gl(?:agent|cbt|dt|ft|imt|oas|pat|ptt|rt|soat)-", "GR1348941"),
    *("T3BlbkFJ", "pypi-AgE", r"S(?:G\.|K)", "sq0csp-", "k_live_", "-us", "://"),
    *(r"\.[\w-]{6}\.[\w-]{27}", r":[0-9A-Za-z_-]{35}", f'"{_RANDOM}', f"'{_RANDOM}"),
)
# However they are spelt: names of passwords and of the clouds' keys, and Slack.
_FOLDED: Final = _compiled("key", "p(?:ass|w)", "secret", "contrase", "token", "xox")


def find_suspect_lines(lines: Sequence[str]) -> list[int]:
    """The places, ascending, of those that may hold a secret."""
    found = {*_holding(lines, _SPELT)}
    found.update(_holding([line.casefold() for line in lines], _FOLDED))
    return sorted(found)


def _holding(lines: Sequence[str], expressions: Iterable[re.Pattern[str]]) -> Iterator[int]:
    together = "\n".join(lines)
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    for expression in expressions:
        for match in expression.finditer(together):
            yield bisect_right(starts, match.start()) - 1
