"""Detection of a model that repeats itself."""

import pytest

from inference.filtering.truncation.repetition import RecentLines, is_repeating


@pytest.mark.parametrize(
    "line",
    [
        "f(a" + ", stdout_wfd" * 5,
        "x = " + "self.a." * 8,
        "# " + "and so on " * 6,
    ],
)
def test_repeated_words_are_a_repetition(line: str) -> None:
    assert is_repeating(line)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "# " + "=" * 76,
        "a = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]",
        "    " * 20,
        "return None, None, None, None",
        "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.v.w.x.y.z",
        "f(a" + ", stdout_wfd" * 5 + ", b",
    ],
)
def test_ordinary_lines_are_no_repetition(line: str) -> None:
    assert not is_repeating(line)


def _first_repeated(*lines: str) -> int | None:
    """Return the index of the first line that is a repetition."""
    recent_lines = RecentLines()
    for index, line in enumerate(lines):
        if recent_lines.is_repetition(line):
            return index
        recent_lines.add(line)
    return None


@pytest.mark.parametrize(
    ("lines", "first"),  # each character of `lines` is one line
    [
        ("aaa", 2),
        ("abab", None),
        ("ababa", 4),
        ("abcabca", 6),
        ("abcdabcda", 8),
        ("abcdeabcdea", None),  # sequences of more than four lines are not detected
        ("xaba", None),
        ("aab", None),
    ],
)
def test_the_third_occurrence_of_a_sequence_of_lines_is_detected(
    lines: str, first: int | None
) -> None:
    assert _first_repeated(*lines) == first


def test_the_beginning_of_the_third_occurrence_is_detected() -> None:
    lines = RecentLines()
    for line in ("read()", "write()") * 2:
        lines.add(line)

    assert lines.can_become_repetition("re")
    assert not lines.can_become_repetition("wr")
