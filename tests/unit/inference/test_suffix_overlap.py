"""The overlap of the end of a growing text with the beginning of another one."""

from hypothesis import given
from hypothesis import strategies as st

from inference.filtering.truncation.repetition import SuffixOverlap
from tests.fakes.cpu_guard import cpu_guard

TEXTS = st.text("ab )", max_size=30)


@given(TEXTS, st.lists(TEXTS, max_size=4))
def test_the_longest_overlap_is_found(text: str, parts: list[str]) -> None:
    overlap = SuffixOverlap(text)

    for part in parts:
        overlap.feed(part)

    grown_text = "".join(parts).rstrip()  # white space at its end does not count
    expected = max(n for n in range(len(text) + 1) if grown_text.endswith(text[:n]))
    assert overlap.length_before_blank == expected


@given(TEXTS, TEXTS, TEXTS)
def test_a_restart_forgets_earlier_text(text: str, before: str, after: str) -> None:
    overlap, fresh = SuffixOverlap(text), SuffixOverlap(text)

    overlap.feed(before)
    overlap.restart()
    overlap.feed(after)
    fresh.feed(after)

    assert overlap.length_before_blank == fresh.length_before_blank


def test_long_texts_take_linear_time() -> None:
    overlap = SuffixOverlap("a" * 500_000 + "b")

    with cpu_guard():
        overlap.feed(("a" * 99_999 + "c") * 5)

    assert overlap.length_before_blank == 0
