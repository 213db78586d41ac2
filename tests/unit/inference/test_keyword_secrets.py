"""Values assigned to names such as `password` are found as secrets.

Our expressions must find the same values as those of the library detect-secrets, in linear time.
"""

import re

import pytest
from detect_secrets.plugins import keyword
from detect_secrets.plugins.keyword import (
    DENYLIST,
    QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP,
    REGEX_BY_FILETYPE,
)
from detect_secrets.util.filetype import FileType
from hypothesis import given
from hypothesis import strategies as st

from inference.context.redaction.keyword_secrets import (
    KEYWORD_HINTS,
    find_keyword_secrets,
    linearize,
)
from tests.fakes.cpu_guard import cpu_guard

RULES = {
    regex: group
    for rules in (QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP, *REGEX_BY_FILETYPE.values())
    for regex, group in rules.items()
}
PIECES = st.sampled_from(
    [
        *("password", "pwd", "key", "api_key", "db_", "pass", "contraseña", "_", "a", "x1", "é"),
        *("=", "==", "!=", ":", ":=", "=>", ";", "(", ")", "[3]", '"]', ".assign", "@", " ", "."),
        *('"', "'", "`", '"hunter2"', "'hunter2'", "`hunter2`", "ab,"),
    ]
)


def test_the_keyword_hints_cover_all_keywords_of_the_library() -> None:
    for keyword_of_library in DENYLIST:
        assert any(hint in keyword_of_library for hint in KEYWORD_HINTS)


@pytest.mark.parametrize("regex", RULES, ids=lambda regex: regex.pattern[-30:])
@given(st.lists(PIECES, max_size=16).map("".join))
def test_each_linear_rule_finds_what_the_librarys_rule_finds(
    regex: re.Pattern[str], line: str
) -> None:
    our_match, library_match = linearize(regex).search(line), regex.search(line)

    group = RULES[regex]
    assert (our_match and our_match.span(group)) == (library_match and library_match.span(group))


def test_a_changed_expression_of_the_library_is_rejected() -> None:
    with pytest.raises(ValueError, match="passwort"):
        linearize(re.compile("passwort = (.*)"))


def test_all_expressions_of_the_library_are_known() -> None:
    library_expressions = [
        value for value in vars(keyword).values() if isinstance(value, re.Pattern)
    ]

    assert {*library_expressions} == {*RULES}


@pytest.mark.parametrize("kind", [FileType.PYTHON, FileType.YAML, FileType.GO, FileType.C])
@pytest.mark.parametrize(
    "text",
    [
        *("password", "pwd", "pwd`a", "`a", "pwd =", "pwd= `a ", "'a'==", "key_password_x"),
        *("pwd='a',", "'pwd'=="),
    ],
)
def test_a_hostile_line_takes_linear_time(text: str, kind: FileType) -> None:
    line = "pwd" + text * (10_000 // len(text)) + " " * 10_000

    with cpu_guard():
        list(find_keyword_secrets(line, kind))


@pytest.mark.parametrize("text", [" ", "=", "a", "a(", "= a(", ":=x", " = ", "\t!"])
def test_a_line_with_almost_a_call_takes_linear_time(text: str) -> None:
    # Lines over 1,000 characters are not searched for calls.
    line = "secret" + text * (990 // len(text))

    with cpu_guard():
        for _ in range(10):
            list(find_keyword_secrets(line, FileType.PYTHON))


@pytest.mark.parametrize(
    "line",
    [
        "secret = get_secret('hunter2x')",
        "password: env['hunter2x']",
        "db = connect(password=read('hunter2x'))",
    ],
)
@pytest.mark.parametrize("kind", [FileType.PYTHON, FileType.YAML])
def test_a_value_that_is_a_call_or_an_index_is_no_secret(line: str, kind: FileType) -> None:
    assert list(find_keyword_secrets(line, kind)) == []


@pytest.mark.parametrize(
    "line",
    ["db = connect(password='hunter2x')", "connect(password='hunter2x', host=env['HOST'])"],
)
@pytest.mark.parametrize("kind", [FileType.PYTHON, FileType.YAML])
def test_a_secret_beside_a_call_or_an_index_is_found(line: str, kind: FileType) -> None:
    secrets = {line[start:end] for start, end in find_keyword_secrets(line, kind)}

    assert "hunter2x" in secrets


@pytest.mark.parametrize(
    "line",
    [
        "connect(password='hunter2x', api_key='swordfish1')",
        "{'secret': 'hunter2x', 'db_password': 'swordfish1'}",
        "login(password='${PASSWORD}', pwd='hunter2x', secret='swordfish1')",
    ],
)
@pytest.mark.parametrize("kind", [FileType.PYTHON, FileType.YAML])
def test_all_secrets_of_a_line_are_found(line: str, kind: FileType) -> None:
    secrets = {line[start:end] for start, end in find_keyword_secrets(line, kind)}

    assert secrets >= {"hunter2x", "swordfish1"}


def test_a_secret_among_many_backticks_is_found() -> None:
    line = "see `a` or maybe `b`, " * 40 + "password = 'hunter2x'" + ", then see `c`" * 40

    secrets = {line[start:end] for start, end in find_keyword_secrets(line, FileType.PYTHON)}

    assert "hunter2x" in secrets
