"""Removes secrets from a text before it becomes part of a prompt. Pure.

The rules are those of detect-secrets (Yelp): the expressions of its plugins, its entropy limits and
its heuristics against false positives. ADR 0025 lists the plugins. The library's own scan is
never called: to verify a secret, the scan can send the secret to the service that issued it.

Text is searched line by line, and the matched text is replaced. Private keys have several lines:
after the header of a key, its whole body is replaced.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
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
    HighEntropyStringsPlugin,
)
from detect_secrets.plugins.ibm_cloud_iam import IbmCloudIamDetector
from detect_secrets.plugins.ibm_cos_hmac import IbmCosHmacDetector
from detect_secrets.plugins.jwt import JwtTokenDetector
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
from detect_secrets.util.filetype import FileType, determine_file_type

from inference.context.redaction.keyword_secrets import find_keyword_secrets
from inference.context.redaction.prefilter import find_suspect_lines

REDACTED: Final = "REDACTED"
# Longer lines are data, and some expressions take quadratic time. A long line is split into parts
# that overlap, so a token of up to _OVERLAP_CHARS is whole in one of them.
MAX_LINE_CHARS: Final = 2_000
_OVERLAP_CHARS: Final = 200
_MIN_HEADER_CHARS: Final = 16  # of a JSON Web Token, in Base64; {"alg":"none"} has 19
MAX_KEY_CHARS: Final = 16_384  # of a private key, from its header to its end
_KEY_END: Final = "-----END"  # begins the last line of a private key
_REDACTED_BODY: Final = f" {REDACTED} "  # follows the header of a private key

# A plugin matches only a line with a long run of token characters: at least SHORT_RUN_CHARS for
# SHORT_TOKENS and _ENTROPY, and LONG_RUN_CHARS for LONG_TOKENS. So one quick check skips all
# plugins for most lines. A test checks the two limits.
SHORT_RUN_CHARS: Final = 11
LONG_RUN_CHARS: Final = 20
_RUN: Final = re.compile(rf"[A-Za-z0-9_+/=-]{{{SHORT_RUN_CHARS},}}")
_REST_OF_RUN: Final = re.compile(r"[A-Za-z0-9_+/=-]*")
# A JSON Web Token has dots, and may be longer than the overlap (see _find_long_web_tokens).
_LONG_WEB_TOKEN: Final = re.compile(rf"[A-Za-z0-9_.+/=-]{{{_OVERLAP_CHARS + 1},}}")
SHORT_TOKENS: Final[tuple[RegexBasedDetector, ...]] = (
    *(ArtifactoryDetector(), JwtTokenDetector(), NpmDetector(), SlackDetector()),
)
LONG_TOKENS: Final[tuple[RegexBasedDetector, ...]] = (
    *(AWSKeyDetector(), AzureStorageKeyDetector(), CloudantDetector(), DiscordBotTokenDetector()),
    *(GitHubTokenDetector(), GitLabTokenDetector(), IbmCloudIamDetector(), IbmCosHmacDetector()),
    *(MailchimpDetector(), OpenAIDetector(), PypiTokenDetector(), SendGridDetector()),
    *(SoftlayerDetector(), SquareOAuthDetector(), StripeDetector(), TelegramBotTokenDetector()),
    TwilioKeyDetector(),
)
_ENTROPY: Final[tuple[HighEntropyStringsPlugin, ...]] = (
    Base64HighEntropyString(),
    HexHighEntropyString(),
)
_BASIC_AUTH: Final = tuple(BasicAuthDetector.denylist)
_PRIVATE_KEY: Final = tuple(PrivateKeyDetector.denylist)
PRIVATE_KEY_HINTS: Final = ("PRIVATE KEY", "PuTTY-")  # each header contains one of these
# A shorter group of an expression is a part of the token's format, not the token.
_MIN_GROUP_CHARS: Final = 16


def file_type(path: str) -> FileType:
    """Return the type by which the library selects its keyword rules."""
    name = path.replace("\\", "/").rpartition("/")[2].lower()
    if name.startswith(".env"):  # dotenv files are not in the library's table
        return FileType.INI
    stem, _, suffix = name.rpartition(".")
    return _type_by_suffix(suffix if stem.strip(".") else "")


@lru_cache(maxsize=256)
def _type_by_suffix(suffix: str) -> FileType:
    """Return the type, cached: the library rebuilds its table at every call."""
    return determine_file_type(f"x.{suffix}")


def redact_line(line: str, kind: FileType) -> str:
    """Return the line without its secrets; the same object if it has none. Line breaks are kept."""
    return mask_spans(line, chain.from_iterable(find_secret_spans(line, kind)))


def find_secret_spans(line: str, kind: FileType) -> Iterator[list[tuple[int, int]]]:
    """Yield the spans of secrets, in one list for each part of a long line.

    The caller may let other tasks run between two parts. Spans may overlap. A trailing line break
    is never included.
    """
    line = line.rstrip("\r\n")
    for offset in range(0, max(1, len(line) - _OVERLAP_CHARS), MAX_LINE_CHARS - _OVERLAP_CHARS):
        part = line[offset : offset + MAX_LINE_CHARS]
        spans: list[tuple[int, int]] = []
        for start, end in _spans_of_part(part, kind):
            # A secret at the end of a part may continue after the part.
            is_cut = end == len(part)
            whole_end = _end_of_run(line, offset + end) if is_cut else offset + end
            spans.append((offset + start, whole_end))
        yield spans
    if len(line) > MAX_LINE_CHARS:
        yield list(_find_long_web_tokens(line))


def _end_of_run(line: str, position: int) -> int:
    """Return the end of the token characters that follow the position."""
    run = _REST_OF_RUN.match(line, position)
    return run.end() if run else position


def _find_long_web_tokens(line: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of JSON Web Tokens that are longer than the overlap. Takes linear time.

    Such a token may be cut at the end of each part, and the plugin accepts only whole tokens.
    """
    for run in _LONG_WEB_TOKEN.finditer(line):
        segments, position = run[0].split("."), run.start()
        for index, segment in enumerate(segments[:-1]):
            first = segment.find("eyJ")  # a header begins with this
            if first >= 0 and len(segment) - first >= _MIN_HEADER_CHARS:
                token = ".".join([segment[first:], segments[index + 1]])
                if JwtTokenDetector.is_formally_valid(token):
                    signed_token = ".".join([token, *segments[index + 2 : index + 3]])
                    yield position + first, position + first + len(signed_token)
            position += len(segment) + 1


def mask_spans(line: str, spans: Iterable[tuple[int, int]]) -> str:
    """Replace the spans by REDACTED. Return the same object if there are none."""
    merged = _merge_spans(spans)
    if not merged:
        return line
    ends = [0, *(end for _, end in merged)]
    starts = [*(start for start, _ in merged), len(line)]
    return REDACTED.join(line[end:start] for end, start in zip(ends, starts, strict=True))


def redact_lines(lines: Sequence[str], kind: FileType) -> list[str]:
    """Redact each line like `redact_line`, in a fraction of the time."""
    redacted = list(lines)
    for index in find_suspect_lines(lines):
        redacted[index] = redact_line(redacted[index], kind)
    return redacted


def redact_text(text: str, kind: FileType) -> str:
    """Redact each line. For texts with private keys, call `redact_private_keys` before."""
    return "".join(redact_lines(text.splitlines(keepends=True), kind))


def redact_private_keys(text: str) -> str:
    """Replace the body of each private key, even if its end is missing.

    Call this before the text is split into windows and lines: a single line of a key's body does
    not look like a secret.
    """
    if any(hint in text for hint in PRIVATE_KEY_HINTS):
        for header in _PRIVATE_KEY:
            if header.pattern in text:  # the patterns are plain text
                text = _mask_private_keys(text, header.pattern)
    return text


def _mask_private_keys(text: str, header: str) -> str:
    parts, position = [], 0
    while (header_start := text.find(header, position)) >= 0:
        start = header_start + len(header)
        parts += [text[position:start], _REDACTED_BODY]
        position = _find_key_end(text, start)
    return "".join([*parts, text[position:]])


def ends_in_private_key(text: str) -> bool:
    """Return whether the text ends within a private key, so that the rest of the key follows."""
    # Longer than any private key, so that the header of a key at the end is in the excerpt.
    excerpt = text[-2 * MAX_KEY_CHARS :]
    redacted = redact_private_keys(excerpt)
    return redacted != excerpt and redacted.endswith(_REDACTED_BODY)


def drop_rest_of_private_key(prefix: str, suffix: str) -> str:
    """Return the suffix without the rest of the private key in which the prefix ends."""
    overlap = prefix[-len(_KEY_END) :]  # the cursor may split the end line, or a blank line
    text = overlap + suffix
    return text[max(len(overlap), _find_key_end(text, 0)) :]


def _find_key_end(text: str, start: int) -> int:
    end = text.find(_KEY_END, start, start + MAX_KEY_CHARS)
    return end if end >= 0 else _end_of_body(text, start)


def _end_of_body(text: str, start: int) -> int:
    """Return the end of the body of a key without an end line: a blank line, or MAX_KEY_CHARS.

    An encrypted key also has a blank line between its headers and its body.
    """
    end = text.find("\n\n", start, start + MAX_KEY_CHARS)
    if end >= 0 and "DEK-Info:" in text[start:end]:
        end = text.find("\n\n", end + 2, start + MAX_KEY_CHARS)
    return end if end >= 0 else min(len(text), start + MAX_KEY_CHARS)


def _spans_of_part(line: str, kind: FileType) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    if "://" in line and "@" in line:
        # Group 1 is the password.
        spans += [match.span(1) for regex in _BASIC_AUTH for match in regex.finditer(line)]
    # 0 if no run has SHORT_RUN_CHARS.
    if longest := max(map(len, _RUN.findall(line)), default=0):
        spans += _token_spans(line, SHORT_TOKENS)
        spans += _entropy_spans(line)
        if longest >= LONG_RUN_CHARS:
            spans += _token_spans(line, LONG_TOKENS)
    spans += find_keyword_secrets(line, kind)
    return spans


def _token_spans(line: str, plugins: tuple[RegexBasedDetector, ...]) -> Iterator[tuple[int, int]]:
    for plugin in plugins:
        for regex in plugin.denylist:
            for match in regex.finditer(line):
                if isinstance(plugin, JwtTokenDetector) and not plugin.is_formally_valid(match[0]):
                    continue
                yield _extend_to_token(line, match)


def _extend_to_token(line: str, match: re.Match[str]) -> tuple[int, int]:
    """Extend the match to the whole token. Some expressions match only its beginning."""
    groups = [i for i in range(1, match.re.groups + 1) if match[i]]
    longest = max(groups, key=lambda i: len(match[i]), default=0)
    start, end = match.span(longest if len(match[longest]) >= _MIN_GROUP_CHARS else 0)
    return start, _end_of_run(line, end)


def _entropy_spans(line: str) -> Iterator[tuple[int, int]]:
    for plugin in _ENTROPY:
        for match in plugin.regex.finditer(line):  # group 2 is the text between quotes
            if _is_random(match[2], plugin) and not _is_harmless(match[2], line, plugin):
                yield match.span(2)


def _is_random(text: str, plugin: HighEntropyStringsPlugin) -> bool:
    is_long = len(text) >= SHORT_RUN_CHARS
    return is_long and plugin.calculate_shannon_entropy(text) > plugin.entropy_limit


def _is_harmless(secret: str, line: str, plugin: HighEntropyStringsPlugin) -> bool:
    return (
        heuristic.is_sequential_string(secret)
        or heuristic.is_potential_uuid(secret)
        or heuristic.is_likely_id_string(secret, line, plugin)
    )


def _merge_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
