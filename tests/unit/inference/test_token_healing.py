"""Token healing: the model writes the partial word at the cursor again."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.filtering.filter import TokenHealer
from inference.filtering.filter_reason import FilterReason


def _feed_all(partial_word: str, *texts: str) -> tuple[str, FilterReason | None]:
    """Return the text that is shown, and the reason if the text is withheld instead."""
    healer = TokenHealer(partial_word)
    shown_text = "".join([healer.feed(text) for text in texts])
    healer.finish()
    return shown_text, healer.reason


@pytest.mark.parametrize(
    ("partial_word", "texts", "shown_text"),
    [
        ("re", ["read(path)"], "ad(path)"),
        (" re", [" ", "r", "ead", "(path)"], "ad(path)"),
        ("read", ["read"], ""),
        ("", ["a", "b"], "ab"),
        ("", [], ""),
    ],
)
def test_the_typed_part_of_the_word_is_not_shown_again(
    partial_word: str, texts: list[str], shown_text: str
) -> None:
    assert _feed_all(partial_word, *texts) == (shown_text, None)


@pytest.mark.parametrize(
    "texts", [["write(path)"], ["ra", "d"], ["r"], ["", ""], [], ["Read"], ["\nread"]]
)
def test_a_word_that_does_not_match_is_withheld(texts: list[str]) -> None:
    assert _feed_all("read", *texts) == ("", FilterReason.HEALING_MISMATCH)


@given(st.text(max_size=8), st.text(max_size=20), st.lists(st.integers(0, 20), max_size=6))
def test_chunking_makes_no_difference(
    partial_word: str, remaining_text: str, cuts: list[int]
) -> None:
    text = partial_word + remaining_text
    edges = [0, *sorted(min(cut_position, len(text)) for cut_position in cuts), len(text)]
    texts = [text[start:end] for start, end in pairwise(edges)]

    assert _feed_all(partial_word, *texts) == (remaining_text, None)
