"""The secret prefilter selects every line in which the rules would find a secret."""

import inspect
import re
from argparse import ArgumentParser

import pytest
from detect_secrets.plugins.keyword import DENYLIST
from detect_secrets.util.filetype import FileType
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from inference.context.redaction import redact
from inference.context.redaction.prefilter import find_suspect_lines
from inference.context.redaction.redact import REDACTED, redact_line, redact_lines

PLUGINS = (*redact.SHORT_TOKENS, *redact.LONG_TOKENS)
TOKEN_PATTERNS = [*(regex for plugin in PLUGINS for regex in plugin.denylist), *redact._BASIC_AUTH]
with_few_examples = settings(max_examples=25, suppress_health_check=list(HealthCheck))
HEX, BASE64 = (
    "0123456789abcdefABCDEF",
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/\\_=-",
)
SECRETS = [
    *("AKIA" + "ABCD1234" * 2, "ghp_" + "a1B2" * 9, "xoxb-123456789012-abcdef"),
    *("password = 'hunter2-and-more'", "postgres://bob:hunter2@db.internal/x"),
    *("'9f86d081884c7d659a2feaa0c55ad015'", "123456789:" + "a1B2c" * 7),
]


@pytest.mark.parametrize("regex", TOKEN_PATTERNS, ids=lambda regex: regex.pattern[:40])
def test_every_token_is_selected(regex: re.Pattern[str]) -> None:
    @with_few_examples
    @given(st.from_regex(regex))
    def is_selected(line: str) -> None:
        if len(line.splitlines()) == 1:  # an expression may also match line breaks
            assert find_suspect_lines(["", line, ""]) == [1]

    is_selected()


@pytest.mark.parametrize("name", DENYLIST)
def test_every_secret_name_is_selected(name: str) -> None:
    @with_few_examples
    @given(st.from_regex(re.compile(name, re.IGNORECASE)))
    def is_selected(line: str) -> None:
        assert find_suspect_lines([f"{line} = 'hunter2x'"]) == [0]

    is_selected()


@with_few_examples
@given(st.text(BASE64, min_size=1, max_size=60) | st.text(HEX, min_size=1, max_size=40))
@example("0123456789abcdef")
@example("abcdefghijkmnopqrstuvwxyz0123")
def test_every_text_of_high_entropy_is_selected(text: str) -> None:
    for line in (f"x = '{text}'", f'x = "{text}"'):
        if any(
            redact._is_random(text, plugin)
            for plugin in redact._ENTROPY
            if _can_detect(text, plugin)
        ):
            assert find_suspect_lines([line]) == [0]


def _can_detect(text: str, plugin: object) -> bool:
    """Return whether the plug-in (for Base64 or for hexadecimal text) accepts all characters."""
    return plugin is redact._ENTROPY[0] or set(text) <= set(HEX)


def test_few_lines_of_ordinary_code_are_selected() -> None:
    lines = inspect.getsource(ArgumentParser).splitlines()

    assert len(find_suspect_lines(lines)) < len(lines) / 20


@given(
    st.lists(st.lists(st.text(max_size=12) | st.sampled_from(SECRETS), max_size=4).map("".join)),
    st.sampled_from([FileType.PYTHON, FileType.INI]),
)
@with_few_examples
def test_redacting_lines_together_equals_redacting_each(lines: list[str], kind: FileType) -> None:
    assert redact_lines(lines, kind) == [redact_line(line, kind) for line in lines]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("before", ["", "İİİ", "ß", "\ud800"])
def test_a_secret_is_found_between_lines_with_any_characters(secret: str, before: str) -> None:
    # The prefilter searches lowercase text, which can be longer than the original. The numbers of
    # the lines must not shift.
    lines = [f"{before}\n", "x = 1", secret, before]

    are_redacted = [REDACTED in line for line in redact_lines(lines, FileType.PYTHON)]

    assert are_redacted == [False, False, True, False]
