"""The shares of a prompt."""

from hypothesis import given
from hypothesis import strategies as st

from inference.context.budget import Budget, share_out

SIZES = st.integers(min_value=0, max_value=20_000)


def _sum(budget: Budget) -> int:
    return budget.files_tokens + budget.suffix_tokens + budget.prefix_tokens


@given(SIZES, SIZES, SIZES, SIZES)
def test_the_parts_together_never_exceed_the_total(
    total: int, files: int, suffix: int, prefix: int
) -> None:
    assert _sum(share_out(total, files=files, suffix=suffix, prefix=prefix)) <= total


@given(SIZES, SIZES, SIZES, SIZES)
def test_nothing_is_lost_while_there_is_room(
    total: int, files: int, suffix: int, prefix: int
) -> None:
    budget = share_out(total, files=files, suffix=suffix, prefix=prefix)

    assert _sum(budget) == min(total, files + suffix + prefix)


@given(SIZES, SIZES, SIZES, SIZES)
def test_no_part_gets_more_than_it_would_like(
    total: int, files: int, suffix: int, prefix: int
) -> None:
    budget = share_out(total, files=files, suffix=suffix, prefix=prefix)

    assert 0 <= budget.files_tokens <= files
    assert 0 <= budget.suffix_tokens <= suffix
    assert 0 <= budget.prefix_tokens <= prefix


def test_the_prefix_gets_at_least_two_fifths_of_a_full_prompt() -> None:
    assert share_out(1_000, files=9_000, suffix=9_000, prefix=9_000) == Budget(350, 250, 400)


def test_what_is_left_over_goes_to_the_prefix_first() -> None:
    assert share_out(1_000, files=100, suffix=9_000, prefix=9_000) == Budget(100, 250, 650)


def test_what_the_prefix_leaves_over_goes_to_the_suffix() -> None:
    assert share_out(1_000, files=9_000, suffix=9_000, prefix=100) == Budget(350, 550, 100)


def test_files_get_what_nobody_else_wants() -> None:
    assert share_out(1_000, files=9_000, suffix=0, prefix=100) == Budget(900, 0, 100)
