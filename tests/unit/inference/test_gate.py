"""The part of the truncated text that is sent, and when."""

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
    return lambda text: not text.endswith(word)


TOKEN: Final = "ghp_" + "a1B2" * 9
SECRETS: Final[dict[str, Callable[..., object]]] = {
    "find_pending_secret": partial(find_pending_secret, kind=FileType.PYTHON),
    "contains_secret": partial(contains_secret, kind=FileType.PYTHON),
}


def _gate(before: str = "", /, **checks: Callable[..., object]) -> LineGate:
    return LineGate(LineChecks(**checks), line_before=before)  # type: ignore[arg-type]  # by name


def _pass(gate: LineGate, *pieces: str) -> str:
    """Return the text that is finally shown."""
    sent = "".join(gate.feed(piece) for piece in pieces) + gate.finish()
    return "" if gate.is_withheld else sent


def test_the_first_line_goes_out_as_it_grows() -> None:
    gate = _gate(is_valid=_never_ends_with("!"))

    assert [gate.feed("a"), gate.feed(" = b"), gate.feed("!")] == ["a", " = b", "!"]


def test_further_lines_go_out_once_they_are_whole() -> None:
    gate = _gate(is_valid=_never_ends_with("!"))

    assert [gate.feed("a\nb"), gate.feed("c"), gate.feed("\nd"), gate.finish()] == [
        "a",
        "",
        "\nbc",
        "\nd",
    ]


def test_a_line_that_breaks_the_file_is_dropped_at_the_end() -> None:
    gate = _gate(is_valid=_never_ends_with("!"))

    assert _pass(gate, "a\nb\nc!\nd!") == "a\nb"
    assert (gate.reason, gate.is_withheld) == (FilterReason.SYNTAX, False)


def test_a_line_that_a_later_one_mends_goes_out_with_it() -> None:
    gate = _gate(is_valid=_never_ends_with("!"))

    assert _pass(gate, "a\nb!\nc\nd") == "a\nb!\nc\nd"
    assert gate.reason is None


def test_a_completion_that_is_never_sound_is_withheld() -> None:
    gate = _gate(is_valid=_never_ends_with("!"))

    sent = gate.feed("a!") + gate.finish()

    assert (sent, gate.is_withheld, gate.reason) == ("a!", True, FilterReason.SYNTAX)


def test_lines_that_nothing_mends_end_it() -> None:
    gate = _gate(is_valid=lambda text: "\n" not in text)

    shown = gate.feed("a" + "\nb" * (MAX_INVALID_LINES + 2))

    assert gate.has_ended
    assert shown == "a"
    assert _pass(gate) == ""
    assert not gate.is_withheld


def test_a_credential_in_the_first_line_is_neither_sent_nor_shown() -> None:
    gate = _gate("a = ", **SECRETS)

    sent = "".join(map(gate.feed, f"'{TOKEN}'\nb")) + gate.finish()

    assert len(sent) <= SHORT_RUN_CHARS
    assert (gate.is_withheld, gate.reason) == (True, FilterReason.SECRET)


def test_a_credential_in_a_later_line_ends_before_that_line() -> None:
    gate = _gate(**SECRETS)

    assert _pass(gate, f"a\nb\nc = {TOKEN}\nd") == "a\nb"
    assert (gate.is_withheld, gate.reason) == (False, FilterReason.SECRET)


def test_a_name_of_a_password_is_not_held_for_ever() -> None:
    gate = _gate(**SECRETS)

    assert _pass(gate, "password = ", "read()", " or ", "fail()") == "password = read() or fail()"


def test_public_code_is_withheld_at_once() -> None:
    gate = _gate(is_public=lambda part: "copied" in part)

    gate.feed("a\nb")
    gate.feed("copied")

    assert gate.has_ended
    assert _pass(gate) == ""
    assert gate.reason is FilterReason.PUBLIC_CODE


def test_nothing_goes_out_after_the_end() -> None:
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
def test_no_credential_goes_out(before: str, secret: str, after: str) -> None:
    gate = _gate(before, **SECRETS)

    sent = "".join(map(gate.feed, secret + after))

    assert len(sent) <= SHORT_RUN_CHARS
    assert gate.finish() == ""
    assert gate.is_withheld


LINES = st.sampled_from(["", "a", "    b = c", "a!", f"x = '{TOKEN}'", "password = 'a'", "!"])
TEXTS = st.lists(LINES, min_size=1, max_size=20).map("\n".join)
GATES = st.sampled_from(
    [
        dict[str, Callable[..., object]](),
        {"is_valid": _never_ends_with("!")},
        SECRETS,
        {"is_valid": _never_ends_with("!"), **SECRETS},
    ]
)


@given(GATES, TEXTS, st.lists(st.integers(min_value=0, max_value=200), max_size=10))
def test_the_chunking_makes_no_difference(
    checks: dict[str, Callable[..., object]], text: str, places: list[int]
) -> None:
    bounds = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    pieces = [text[a:b] for a, b in pairwise(bounds)]
    whole, pieced = _gate(**checks), _gate(**checks)

    assert _pass(pieced, *pieces) == _pass(whole, text)
    assert (pieced.reason, pieced.is_withheld) == (whole.reason, whole.is_withheld)


@given(GATES, TEXTS)
def test_what_is_shown_is_what_came_up_to_some_point(
    checks: dict[str, Callable[..., object]], text: str
) -> None:
    assert text.startswith(_pass(_gate(**checks), text))


@given(TEXTS)
def test_each_line_is_judged_once(text: str) -> None:
    num_asked = 0

    def is_valid(_: str) -> bool:
        nonlocal num_asked
        num_asked += 1
        return True

    _pass(_gate(is_valid=is_valid), *text)

    assert num_asked == text.count("\n") + 1


@pytest.mark.parametrize(
    "line", ["password = '", "db.PassWord: ", "x = api_key(", "self.client_key='", "CONTRASEÑA = "]
)
def test_what_a_name_of_a_credential_is_given_is_held_from_its_beginning(line: str) -> None:
    assert find_pending_secret(line, FileType.PYTHON) == len(line)
    assert find_pending_secret(f"{line}ab", FileType.PYTHON) == len(line)


@pytest.mark.parametrize("line", ["monkey = 1", "x = f(keys, passes)", "    return items"])
def test_what_names_no_credential_is_not_held(line: str) -> None:
    assert find_pending_secret(line, FileType.PYTHON) is None


@pytest.mark.parametrize("text", ["_", "a1", "password", "key_", "://a:", "-----BEGIN", "a."])
def test_a_line_without_end_is_looked_at_once(text: str) -> None:
    with cpu_guard():
        find_pending_secret(text * (500_000 // len(text)), FileType.PYTHON)


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("f(a_long_name_of_a_function", None),
        ("f(a_long_name_of_4_words", 2),
        ("f(a.AbcdefghijKlmnopqrstUvwxyz", 4),
        ('get("http://localhost:8080/AKIAABCDEF12', 26),
        ("a_very_long_name-----BEGIN RSA ", 16),
        ("http_client.get(short1", None),
    ],
)
def test_what_may_become_a_token_is_held_from_its_beginning(line: str, place: int | None) -> None:
    assert find_pending_secret(line, FileType.PYTHON) == place
