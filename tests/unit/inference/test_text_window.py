"""Windows: the end (`tail`) or the beginning (`head`) of a long text that goes into a prompt.

A tail begins at an anchor: a line that stays the same while the user types, so that the beginning
of the prompt stays the same, too, and stays in the prefix cache.
"""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from inference.context.tokenization.text_window import MAX_SKIPPED_SHARE, head, tail

TEXTS = st.text(alphabet="ab \n世", max_size=400) | st.text(max_size=200)
LIMITS = st.integers(min_value=0, max_value=120)
SOURCE = "".join(f"value_{number} = compute({number}, 'x')\n" for number in range(2_000))


@given(TEXTS, LIMITS)
def test_a_tail_is_an_end_of_the_text_within_the_limit(text: str, max_chars: int) -> None:
    window = tail(text, max_chars=max_chars)

    assert text.endswith(window)
    assert len(window) <= max_chars


@given(TEXTS, LIMITS)
def test_a_head_is_a_beginning_of_the_text_within_the_limit(text: str, max_chars: int) -> None:
    window = head(text, max_chars=max_chars)

    assert text.startswith(window)
    assert len(window) <= max_chars


@given(TEXTS)
def test_a_text_that_fits_is_kept_whole(text: str) -> None:
    assert tail(text, max_chars=len(text)) == head(text, max_chars=len(text)) == text


def test_a_tail_begins_with_a_line() -> None:
    window = tail(SOURCE, max_chars=3_000)

    assert window.startswith("value_")


def test_a_head_ends_with_a_line() -> None:
    assert head(SOURCE, max_chars=3_000).endswith(")\n")


def test_a_tail_of_one_very_long_line_may_begin_anywhere() -> None:
    assert tail("x" * 100 + "y" * 10, max_chars=10) == "y" * 10


def test_a_head_of_one_very_long_line_may_end_anywhere() -> None:
    assert head("y" * 10 + "x" * 100, max_chars=10) == "y" * 10


def test_a_tail_keeps_the_end_of_a_very_long_line_that_has_just_ended() -> None:
    window = tail("x" * 1_000 + "\n", max_chars=100)

    assert len(window) > 50


def test_a_window_keeps_most_of_the_text_that_fits() -> None:
    ends = [len("".join(SOURCE.splitlines(keepends=True)[:n])) for n in range(300, 2_000, 7)]

    kept_chars = [len(tail(SOURCE[:end], max_chars=4_000)) for end in ends]

    # To begin at an anchor, a window skips about 16 lines on average (`ANCHOR_EVERY`), and never
    # more than MAX_SKIPPED_SHARE of its whole lines. The limit of 4,000 characters may cut the
    # first line, so the minimum does not count it.
    min_whole_lines_chars = 4_000 - max(map(len, SOURCE.splitlines(keepends=True)))
    assert sum(kept_chars) / len(kept_chars) > 0.75 * 4_000
    assert min(kept_chars) >= (1 - MAX_SKIPPED_SHARE) * min_whole_lines_chars


def test_the_start_is_stable_for_most_keystrokes() -> None:
    num_keystrokes = 2_000
    starts = [
        end - len(tail(SOURCE[:end], max_chars=3_000))
        for end in range(30_000, 30_000 + num_keystrokes)
    ]

    num_moves = sum(before != after for before, after in pairwise(starts))

    assert num_moves < num_keystrokes / 100


def test_the_start_moves_at_most_once_while_one_line_is_typed() -> None:
    line = "    return self.reader.read()"

    starts = {
        len(SOURCE + line[:end]) - len(tail(SOURCE + line[:end], max_chars=3_000))
        for end in range(len(line))
    }

    assert len(starts) <= 2


def test_half_a_surrogate_pair_is_accepted() -> None:
    text = "\ud800 = 1\n" * 1_000

    assert text.endswith(tail(text, max_chars=500))
