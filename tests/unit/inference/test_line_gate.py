"""The line gate sends truncated text line by line, and withholds invalid or secret text."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Final

import pytest
from detect_secrets.util.filetype import FileType
from hypothesis import given
from hypothesis import strategies as st

from inference.context.redaction.redact import SHORT_RUN_CHARS
from inference.filtering.filter_reason import FilterReason
from inference.filtering.line_gate import MAX_INVALID_LINES, LineChecks, LineGate
from inference.filtering.secret_detection import contains_secret, find_pending_secret
from tests.fakes.cpu_guard import cpu_guard


def _never_ends_with(word: str) -> Callable[[str], bool]:
    """Return a fake syntax check: a text is valid unless it ends with `word`."""
    return lambda text: not text.endswith(word)


TOKEN: Final = "ghp_" + "a1B2" * 9  # in the format of GitHub
SECRET_CHECKS: Final[dict[str, Callable[..., object]]] = {
    "find_pending_secret": partial(find_pending_secret, kind=FileType.PYTHON),
    "contains_secret": partial(contains_secret, kind=FileType.PYTHON),
}


def _gate(before: str = "", /, **checks: Callable[..., object]) -> LineGate:
    """Return a gate with these checks; `before` is the text before the cursor on its line."""
    return LineGate(LineChecks(**checks), line_before=before)  # type: ignore[arg-type]  # by name


def _show(gate: LineGate, *chunks: str) -> str:
    """Feed the chunks to the gate, finish it, and return the text that is finally shown."""
    sent_text = "".join(gate.feed(chunk) for chunk in chunks) + gate.finish()
    return "" if gate.is_withheld else sent_text


def test_the_first_line_is_sent_while_it_grows() -> None:
    gate = _gate(is_valid=_never_ends_with("!"))

    assert [gate.feed("a"), gate.feed(" = b"), gate.feed("!")] == ["a", " = b", "!"]


def test_further_lines_are_sent_when_complete() -> None:
    gate = _gate(is_valid=_never_ends_with("!"))

    assert [gate.feed("a\nb"), gate.feed("c"), gate.feed("\nd"), gate.finish()] == [
        "a",
        "",
        "\nbc",
        "\nd",
    ]


def test_the_break_after_a_passed_line_is_sent_when_the_next_line_begins() -> None:
    gate = LineGate(
        LineChecks(is_valid=_never_ends_with("!")), line_before="", client_shows_text_early=True
    )

    assert [
        gate.feed("a"),
        gate.feed("\n  "),
        gate.feed("b"),
        gate.feed("\nc!"),
        gate.finish(),
    ] == [
        "a",
        "",
        "\n",
        "  b\n",
        "",
    ]


def test_no_break_is_sent_after_a_line_that_has_not_passed() -> None:
    gate = LineGate(
        LineChecks(is_valid=_never_ends_with("!")), line_before="", client_shows_text_early=True
    )

    assert [gate.feed("a!"), gate.feed("\nb")] == ["a!", ""]


def test_a_last_line_with_invalid_syntax_is_dropped() -> None:
    gate = _gate(is_valid=_never_ends_with("!"))

    assert _show(gate, "a\nb\nc!\nd!") == "a\nb"
    assert (gate.reason, gate.is_withheld) == (FilterReason.SYNTAX, False)


def test_an_invalid_line_is_sent_once_a_later_line_makes_it_valid() -> None:
    gate = _gate(is_valid=_never_ends_with("!"))

    assert _show(gate, "a\nb!\nc\nd") == "a\nb!\nc\nd"
    assert gate.reason is None


def test_a_completion_that_is_never_valid_is_withheld() -> None:
    gate = _gate(is_valid=_never_ends_with("!"))

    sent_text = gate.feed("a!") + gate.finish()

    assert (sent_text, gate.is_withheld, gate.reason) == ("a!", True, FilterReason.SYNTAX)


def test_invalid_lines_before_a_secret_are_withheld() -> None:
    gate = _gate(is_valid=_never_ends_with("!"), **SECRET_CHECKS)

    assert _show(gate, f"a!\nb = {TOKEN}") == ""
    assert (gate.is_withheld, gate.reason) == (True, FilterReason.SECRET)


def test_many_invalid_lines_end_the_completion() -> None:
    gate = _gate(is_valid=lambda text: "\n" not in text)

    sent_text = gate.feed("a" + "\nb" * (MAX_INVALID_LINES + 2))

    assert gate.has_ended
    assert sent_text == "a"
    assert _show(gate) == ""
    assert not gate.is_withheld


def test_a_secret_in_the_first_line_withholds_the_completion() -> None:
    gate = _gate("a = ", **SECRET_CHECKS)

    sent_text = "".join(map(gate.feed, f"'{TOKEN}'\nb")) + gate.finish()

    assert len(sent_text) <= SHORT_RUN_CHARS
    assert (gate.is_withheld, gate.reason) == (True, FilterReason.SECRET)


def test_a_secret_in_a_later_line_ends_the_completion_before_it() -> None:
    gate = _gate(**SECRET_CHECKS)

    assert _show(gate, f"a\nb\nc = {TOKEN}\nd") == "a\nb"
    assert (gate.is_withheld, gate.reason) == (False, FilterReason.SECRET)


def test_a_password_variable_with_an_ordinary_value_is_sent() -> None:
    gate = _gate(**SECRET_CHECKS)

    assert _show(gate, "password = ", "read()", " or ", "fail()") == "password = read() or fail()"


def test_public_code_is_withheld_at_once() -> None:
    gate = _gate(is_public=lambda part: "copied" in part)

    gate.feed("a\nb")
    gate.feed("copied")

    assert gate.has_ended
    assert _show(gate) == ""
    assert gate.reason is FilterReason.PUBLIC_CODE


def test_no_text_is_sent_after_the_end() -> None:
    gate = _gate(is_public=lambda part: "copied" in part)
    gate.feed("a copied")

    assert gate.feed("b\nc") + gate.finish() == ""


@pytest.mark.parametrize(
    ("before", "secret", "after"),
    [
        ("token = '", TOKEN, "')"),
        ("a = f('AKIA", "ABCD1234" * 2, "')"),
        ('digest = "', "9f86d081884c7d659a2feaa0c55ad015", '"'),
        ('db_password = "', "hunter2-and-more", '"'),
        ('url = "postgres://bob:', "hunter2", '@db.internal/x"'),
        ("-----BEGIN RSA ", "PRIVATE KEY", "-----"),
    ],
)
def test_at_most_a_short_beginning_of_a_secret_is_sent(
    before: str, secret: str, after: str
) -> None:
    gate = _gate(before, **SECRET_CHECKS)

    sent_text = "".join(map(gate.feed, secret + after))

    assert len(sent_text) <= SHORT_RUN_CHARS
    assert gate.finish() == ""
    assert gate.is_withheld


LINES = st.sampled_from(["", "a", "    b = c", "a!", f"x = '{TOKEN}'", "password = 'a'", "!"])
TEXTS = st.lists(LINES, min_size=1, max_size=20).map("\n".join)
GATES = st.sampled_from(
    [
        dict[str, Callable[..., object]](),
        {"is_valid": _never_ends_with("!")},
        SECRET_CHECKS,
        {"is_valid": _never_ends_with("!"), **SECRET_CHECKS},
    ]
)


@given(GATES, TEXTS, st.lists(st.integers(min_value=0, max_value=200), max_size=10))
def test_chunking_makes_no_difference(
    checks: dict[str, Callable[..., object]], text: str, cuts: list[int]
) -> None:
    bounds = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    chunks = [text[start:end] for start, end in pairwise(bounds)]
    whole_gate, chunked_gate = _gate(**checks), _gate(**checks)

    assert _show(chunked_gate, *chunks) == _show(whole_gate, text)
    assert (chunked_gate.reason, chunked_gate.is_withheld) == (
        whole_gate.reason,
        whole_gate.is_withheld,
    )


@given(GATES, TEXTS)
def test_the_shown_text_is_a_beginning_of_the_input(
    checks: dict[str, Callable[..., object]], text: str
) -> None:
    assert text.startswith(_show(_gate(**checks), text))


@given(TEXTS)
def test_each_line_is_validated_once(text: str) -> None:
    num_validated = 0

    def is_valid(_: str) -> bool:
        nonlocal num_validated
        num_validated += 1
        return True

    _show(_gate(is_valid=is_valid), *text)

    assert num_validated == text.count("\n") + 1


@pytest.mark.parametrize(
    "line", ["password = '", "db.PassWord: ", "x = api_key(", "self.client_key='", "CONTRASEÑA = "]
)
def test_the_value_of_a_secret_name_is_held_back(line: str) -> None:
    assert find_pending_secret(line, FileType.PYTHON) == len(line)
    assert find_pending_secret(f"{line}ab", FileType.PYTHON) == len(line)


@pytest.mark.parametrize("line", ["monkey = 1", "x = f(keys, passes)", "    return items"])
def test_lines_without_a_secret_name_are_not_held_back(line: str) -> None:
    assert find_pending_secret(line, FileType.PYTHON) is None


@pytest.mark.parametrize("text", ["_", "a1", "password", "key_", "://a:", "-----BEGIN", "a."])
def test_a_long_line_takes_linear_time(text: str) -> None:
    with cpu_guard():
        find_pending_secret(text * (500_000 // len(text)), FileType.PYTHON)


# A run of 11 characters with a digit is a possible token, and so is a run of 20 letters.
@pytest.mark.parametrize(
    ("line", "start"),  # the index of the first character that is held back; None: nothing is
    [
        ("f(a_long_name_of_a_function", None),
        ("f(a_long_name_of_4_words", 2),
        ("f(a.AbcdefghijKlmnopqrstUvwxyz", 4),
        ('get("http://localhost:8080/AKIAABCDEF12', 26),
        ("a_very_long_name-----BEGIN RSA ", 16),
        ("http_client.get(short1", None),
    ],
)
def test_a_possible_token_is_held_back_from_its_beginning(line: str, start: int | None) -> None:
    assert find_pending_secret(line, FileType.PYTHON) == start
