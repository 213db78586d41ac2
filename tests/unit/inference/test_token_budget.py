"""The division of the token budget of a prompt among its parts."""

from dataclasses import astuple

from hypothesis import given
from hypothesis import strategies as st

from inference.context.prompt.token_budget import TokensByPart, TokenShares, allocate

SIZES = st.integers(min_value=0, max_value=20_000)
DEMANDS = st.builds(TokensByPart, SIZES, SIZES, SIZES, SIZES)
SHARES = TokenShares(suffix=0.2, files=0.3, snippets=0.1)
EVERYTHING = TokensByPart(9_000, 9_000, 9_000, 9_000)


def _allocate(total: int, demand: TokensByPart) -> TokensByPart:
    """Allocate `total` tokens.

    The tier's budget is 1,000 tokens. The shares of prefix, suffix, files and snippets are 400,
    200, 300 and 100 of them.
    """
    return allocate(total, demand, shares=SHARES, nominal=1_000)


@given(SIZES, DEMANDS)
def test_the_parts_never_exceed_the_total(total: int, demand: TokensByPart) -> None:
    assert _allocate(total, demand).total <= total


@given(SIZES, DEMANDS)
def test_all_tokens_are_allocated_while_there_is_demand(total: int, demand: TokensByPart) -> None:
    assert _allocate(total, demand).total == min(total, demand.total)


@given(SIZES, DEMANDS)
def test_no_part_gets_more_than_it_can_use(total: int, demand: TokensByPart) -> None:
    budget = _allocate(total, demand)

    assert all(0 <= a <= b for a, b in zip(astuple(budget), astuple(demand), strict=True))


@given(SIZES, SIZES, DEMANDS)
def test_a_smaller_total_never_gives_a_part_more(
    first_total: int, second_total: int, demand: TokensByPart
) -> None:
    smaller_budget, larger_budget = (
        _allocate(total, demand) for total in sorted((first_total, second_total))
    )

    assert all(a <= b for a, b in zip(astuple(smaller_budget), astuple(larger_budget), strict=True))


@given(st.integers(min_value=1, max_value=1_000), DEMANDS)
def test_snippets_are_shortened_first_then_files_then_the_suffix_then_the_prefix(
    total: int, demand: TokensByPart
) -> None:
    """A part claims its share, or its demand if that is less.

    A part that gets less than its claim leaves nothing to the parts that are shortened before it.
    """
    prefix_claim, suffix_claim, files_claim = (
        min(demanded, share)
        for demanded, share in zip(astuple(demand)[:3], (400, 200, 300), strict=True)
    )

    budget = _allocate(total, demand)

    if budget.files < files_claim:
        assert budget.snippets == 0
    if budget.suffix < suffix_claim:
        assert budget.files == 0
    if budget.prefix < prefix_claim:
        assert budget.suffix == 0


def test_a_full_prompt_follows_the_shares() -> None:
    assert _allocate(1_000, EVERYTHING) == TokensByPart(400, 200, 300, 100)


def test_a_smaller_total_drops_snippets_then_files_then_the_suffix() -> None:
    assert _allocate(900, EVERYTHING) == TokensByPart(400, 200, 300, 0)
    assert _allocate(700, EVERYTHING) == TokensByPart(400, 200, 100, 0)
    assert _allocate(500, EVERYTHING) == TokensByPart(400, 100, 0, 0)
    assert _allocate(300, EVERYTHING) == TokensByPart(300, 0, 0, 0)


def test_unused_tokens_go_to_the_prefix_then_the_suffix_then_files() -> None:
    assert _allocate(1_000, TokensByPart(9_000, 100, 9_000, 0)) == TokensByPart(600, 100, 300, 0)
    assert _allocate(1_000, TokensByPart(100, 9_000, 9_000, 9_000)) == TokensByPart(
        100, 500, 300, 100
    )
    assert _allocate(1_000, TokensByPart(100, 100, 9_000, 9_000)) == TokensByPart(
        100, 100, 700, 100
    )
    assert _allocate(1_000, TokensByPart(100, 0, 0, 9_000)) == TokensByPart(100, 0, 0, 900)
