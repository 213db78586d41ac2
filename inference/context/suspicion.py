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

# As they are spelt: Artifactory, JSON web tokens, npm, AWS, Azure, GitHub, GitLab, OpenAI, PyPI,
# SendGrid, Square, Stripe, Twilio, Mailchimp, and what stands between a password and its host.
_SPELT: Final = (
    *("AKC", "AP", "eyJ", "_authToken", "A3T", "ABIA", "ACCA", "AKIA", "ASIA", "AccountKey"),
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "glpat-", "gldt-", "glft-", "glsoat-", "glrt-"),
    *("GR1348941", "glcbt-", "glimt-", "glptt-", "glagent-", "gloas-", "T3BlbkFJ", "pypi-AgE"),
    *("SG.", "sq0csp-", "k_live_", "AC", "SK", "-us", "://"),
)
# However they are spelt: names of passwords and of the clouds' keys, and Slack.
_FOLDED: Final = ("key", "pass", "pw", "secret", "contrase", "token", "xox")
# Discord's and Telegram's tokens; quoted text of an entropy that takes 23 different characters, or
# more than 8 digits of 16.
_SHAPES: Final = (
    re.compile(r"\.[\w-]{6}\.[\w-]{27}"),
    re.compile(r":[0-9A-Za-z_-]{35}"),
    re.compile(r"""["'](?:[A-Za-z0-9+/\\_=-]{23,}|[0-9A-Fa-f]{9,})["']"""),
)


def suspects(lines: Sequence[str]) -> list[int]:
    """The places, ascending, of those that may hold a secret."""
    found = {*_holding(lines, _SPELT, _SHAPES)}
    found.update(_holding([line.casefold() for line in lines], _FOLDED, ()))
    return sorted(found)


def _holding(
    lines: Sequence[str], texts: Iterable[str], shapes: Iterable[re.Pattern[str]]
) -> Iterator[int]:
    together = "\n".join(lines)
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    for text in texts:
        position = together.find(text)
        while position >= 0:
            number = bisect_right(starts, position)
            yield number - 1
            position = together.find(text, starts[number])
    for shape in shapes:
        for match in shape.finditer(together):
            yield bisect_right(starts, match.start()) - 1
