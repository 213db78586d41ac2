"""What looks like a credential, by the rules of detect-secrets.

Its plugins are asked for their patterns only: none of them verifies anything over the network. Left
out are public addresses, which are no secret, and hexadecimal strings of fewer than 16 digits.
Knows single lines: a key that is spread over lines is known by its first one.
"""

import re
from collections.abc import Iterator
from typing import Final

from detect_secrets.filters import heuristic
from detect_secrets.plugins.artifactory import ArtifactoryDetector
from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
from detect_secrets.plugins.base import RegexBasedDetector
from detect_secrets.plugins.basic_auth import BasicAuthDetector
from detect_secrets.plugins.cloudant import CloudantDetector
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.github_token import GitHubTokenDetector
from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
from detect_secrets.plugins.high_entropy_strings import (
    Base64HighEntropyString,
    HexHighEntropyString,
)
from detect_secrets.plugins.ibm_cloud_iam import IbmCloudIamDetector
from detect_secrets.plugins.ibm_cos_hmac import IbmCosHmacDetector
from detect_secrets.plugins.jwt import JwtTokenDetector
from detect_secrets.plugins.keyword import (
    DENYLIST,
    QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP,
    REGEX_BY_FILETYPE,
    KeywordDetector,
)
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.npm import NpmDetector
from detect_secrets.plugins.openai import OpenAIDetector
from detect_secrets.plugins.private_key import PrivateKeyDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.softlayer import SoftlayerDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.stripe import StripeDetector
from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector
from detect_secrets.plugins.twilio import TwilioKeyDetector
from detect_secrets.util.filetype import determine_file_type

Span = tuple[int, int]  # of characters, the end not included

_DETECTORS: Final[tuple[RegexBasedDetector, ...]] = (
    ArtifactoryDetector(),
    AWSKeyDetector(),
    AzureStorageKeyDetector(),
    BasicAuthDetector(),
    CloudantDetector(),
    DiscordBotTokenDetector(),
    GitHubTokenDetector(),
    GitLabTokenDetector(),
    IbmCloudIamDetector(),
    IbmCosHmacDetector(),
    MailchimpDetector(),
    NpmDetector(),
    OpenAIDetector(),
    PrivateKeyDetector(),
    PypiTokenDetector(),
    SendGridDetector(),
    SlackDetector(),
    SoftlayerDetector(),
    SquareOAuthDetector(),
    StripeDetector(),
    TelegramBotTokenDetector(),
    TwilioKeyDetector(),
)
_JWT: Final = JwtTokenDetector()
_ENTROPY: Final = (Base64HighEntropyString(), HexHighEntropyString())
_KEYWORDS: Final = KeywordDetector()
# Longer lines are packed data; the rules' patterns would be slow on them (some are quadratic).
MAX_LINE_CHARS: Final = 2_000
_MIN_RUN: Final = 16  # characters of the shortest token that any rule knows
_KEYWORD: Final = re.compile("|".join(DENYLIST), re.IGNORECASE)
# Nearly all lines have none of these, and no rule need look at them. A token with neither a digit
# nor a known beginning passes: long names are everywhere, and 1 in 200 tokens of 30 has no digit.
_SUSPICIOUS: Final = re.compile(
    rf"\b(?=[A-Za-z_+/=-]{{0,99}}\d)[\w+/=-]{{{_MIN_RUN}}}|://[^\s/]+:[^\s/]+@|PRIVATE KEY"
    rf"|\b(?:gl[a-z]{{2,5}}-|gh[oprsu]_|xox[abposr]-|sk-|[rs]k_live_)|{_KEYWORD.pattern}",
    re.IGNORECASE,
)
_TOKEN_END: Final = re.compile(r"[\w.+/=-]*")
_GROWING: Final = re.compile(rf"[\w+/=.-]{{{_MIN_RUN},}}$|://[^\s/]+:[^\s/]*$|-----BEGIN[A-Z ]*$")


def secret_spans(line: str, path: str = "") -> list[Span]:
    """Where in `line` credentials are, in no order; they may overlap. The path's suffix tells
    whether a secret must be in quotes (in code) or need not (in configuration)."""
    line = line[:MAX_LINE_CHARS]
    if _SUSPICIOUS.search(line) is None:
        return []
    return [*_shapes(line), *_values(line, path)]


def held_from(line: str) -> int | None:
    """From where on a line that is still growing may turn out to hold a credential; None: it does
    not look like it so far."""
    keyword, growing = _KEYWORD.search(line), _GROWING.search(line)
    places = [found.start() for found in (keyword, growing) if found is not None]
    return min(places, default=None)


def _shapes(line: str) -> Iterator[Span]:
    for detector in _DETECTORS:
        for pattern in detector.denylist:
            for found in pattern.finditer(line):
                yield found.span()


def _values(line: str, path: str) -> Iterator[Span]:
    for token in _JWT.analyze_string(line):
        start, end = _span(line, token)
        rest = _TOKEN_END.match(line, end)  # the rule stops before the signature
        yield start, rest.end() if rest else end
    for plugin in _ENTROPY:
        for value in plugin.analyze_string(line):
            is_random = plugin.calculate_shannon_entropy(value) > plugin.entropy_limit
            is_known = heuristic.is_likely_id_string(value, line, plugin)
            if len(value) >= _MIN_RUN and is_random and not is_known and _is_plausible(value):
                yield _span(line, value)
    if not heuristic.is_indirect_reference(line):
        rules = REGEX_BY_FILETYPE.get(
            determine_file_type(path), QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP
        )
        for value in _KEYWORDS.analyze_string(line, denylist_regex_to_group=rules):
            if _is_plausible(value):
                yield _span(line, value)


def _is_plausible(value: str) -> bool:
    """detect-secrets' own heuristics against what only looks like a credential."""
    return not (
        heuristic.is_sequential_string(value)
        or heuristic.is_potential_uuid(value)
        or heuristic.is_templated_secret(value)
        or heuristic.is_prefixed_with_dollar_sign(value)
        or heuristic.is_not_alphanumeric_string(value)
    )


def _span(line: str, value: str) -> Span:
    start = line.find(value)
    return start, start + len(value)
