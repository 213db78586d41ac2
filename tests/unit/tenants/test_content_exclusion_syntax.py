"""The text format in which administrators write content exclusions: a small subset of YAML."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.base.errors import InvalidValue
from tenants.policy.content_exclusion_syntax import format_exclusions, parse_exclusions

# Without characters that end a line. There are more of them than \n.
names = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=20)
exclusions = st.dictionaries(names, st.lists(names, max_size=4, unique=True).map(tuple), max_size=4)


@given(exclusions)
def test_formatted_exclusions_can_be_parsed_again(exclusion: dict[str, tuple[str, ...]]) -> None:
    assert parse_exclusions(format_exclusions(exclusion)) == exclusion


@pytest.mark.parametrize(
    "text",
    [
        '"*":\n  - "**/.env"\n  - "a b"\npayments:\n  - keys/**\n',
        '"*": [\'**/.env\', "a b"]\npayments: [keys/**]',
        '# all\n"*":   # here\n- "**/.env"  # a file\n- "a b"\n\n\'payments\':\n  - keys/**  # too',
        '"*": ["**/.env"]\n  - "a b"\npayments: [keys/**,]',
        '"*": ["**/.env", "a b", "**/.env"]\r\npayments:\r\n  - "keys/**"\r\n',
    ],
)
def test_equivalent_notations_are_read_alike(text: str) -> None:
    assert parse_exclusions(text) == {"*": ("**/.env", "a b"), "payments": ("keys/**",)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**/secrets/**", {"*": ("**/secrets/**",)}),
        ("*.pem  # keys\nsrc/keys/x\n", {"*": ("*.pem", "src/keys/x")}),
        ('shop:\n  - a\n**/.env\n"*":\n  - b', {"shop": ("a",), "*": ("**/.env", "b")}),
    ],
)
def test_a_pattern_alone_on_a_line_applies_to_all_repositories(
    text: str, expected: dict[str, tuple[str, ...]]
) -> None:
    assert parse_exclusions(text) == expected


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n"])
def test_an_empty_text_excludes_nothing(text: str) -> None:
    assert parse_exclusions(text) == {}


def test_a_repository_may_have_a_path_and_a_port() -> None:
    text = "https://git.example:8443/a/b:\n  - x"

    assert parse_exclusions(text) == {"https://git.example:8443/a/b": ("x",)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- x", "Line 1: start with a repository"),
        ('"*":\n  - **/.env', "Line 2: put patterns that start with * in quotes"),
        ("*: [x]", "Line 1: put patterns that start with * in quotes"),
        ("a:\n  - x\na:\n  - y", 'Line 3: "a" is already defined above'),
        ("a:\n  x", "Line 2: enter a repository"),
        ("a:\n  b:\n    - x", "Line 2: enter a repository"),
        ("a: x", "Line 1: after the colon"),
        ('a: ["x" "y"]', "Line 1: separate the patterns in a list"),
        ('a: ["x"', "Line 1: after the colon"),
        ("a:\n  - ''", "Line 2: the name or pattern is empty"),
        ('a:\n  - "x', "Line 2: enter a repository"),
        ("just words", "Line 1: enter a repository"),
        ("shop:\n  **/.env", "Line 2: enter a repository"),
    ],
)
def test_an_error_names_its_line(text: str, message: str) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        parse_exclusions(text)

    assert exc_info.value.field == "content_exclusion"
    assert exc_info.value.message.startswith(message)


@pytest.mark.parametrize(
    ("line", "glob"),
    [
        ("- a  b  ", "a  b"),
        ("- a # why", "a"),
        ('- "a"   # why', "a"),
        ("-   'a'  ", "a"),
        ("- a" + " " * 10_000 + "b", "a" + " " * 10_000 + "b"),
    ],
)
def test_whitespace_and_comments_around_a_pattern_are_ignored(line: str, glob: str) -> None:
    assert parse_exclusions(f"shop  :\n{line}") == {"shop": (glob,)}


@pytest.mark.parametrize("line", ["- a#b", '- "a"#b', "- a" + " " * 50_000 + "x#"])
def test_a_comment_must_follow_whitespace(line: str) -> None:
    with pytest.raises(InvalidValue):
        parse_exclusions(f"shop:\n{line}")
