"""The cut and the layout of a fill-in-the-middle sample."""

import random
from collections.abc import Callable

import pytest

from inference.demo_model.fim import Cut, FimIds, Order, arrange, cut_line_at, cut_lines, cut_span

IDS = FimIds(prefix=1, suffix=2, middle=3, end=0)
SOURCE = 'class Reader:\n    def __init__(self, path):\n        self.path = path\n\n\nNAME = "ü"\n'
CHOICES = (cut_span, cut_lines)
SEEDS = range(300)


@pytest.mark.parametrize("choose", CHOICES)
@pytest.mark.parametrize("source", [SOURCE, "", "x", "\n\n\n", "no break at the end"])
def test_prefix_middle_and_suffix_give_the_source_back(
    choose: Callable[[str, random.Random], Cut], source: str
) -> None:
    cuts = [choose(source, random.Random(seed)) for seed in SEEDS]

    assert {cut.prefix + cut.middle + cut.suffix for cut in cuts} == {source}


@pytest.mark.parametrize("choose", CHOICES)
def test_the_same_seed_gives_the_same_cut(choose: Callable[[str, random.Random], Cut]) -> None:
    assert choose(SOURCE, random.Random(7)) == choose(SOURCE, random.Random(7))


def test_a_cut_of_lines_ends_before_a_line_break() -> None:
    cuts = [cut_lines(SOURCE, random.Random(seed)) for seed in SEEDS]

    assert all(cut.suffix == "" or cut.suffix.startswith("\n") for cut in cuts)


def test_a_cut_of_lines_spans_four_lines_at_most() -> None:
    cuts = [cut_lines(SOURCE, random.Random(seed)) for seed in SEEDS]

    assert max(cut.middle.count("\n") for cut in cuts) == 3


def test_many_cuts_of_lines_begin_inside_a_word() -> None:
    cuts = [cut_lines(SOURCE, random.Random(seed)) for seed in SEEDS]

    inside = [c for c in cuts if c.prefix[-1:].isalpha() and c.middle[:1].isalpha()]
    assert len(inside) > len(cuts) / 5


def test_a_cut_at_a_cursor_runs_to_the_end_of_its_line() -> None:
    cut = cut_line_at("a = b\nc = d\n", 2)

    assert cut == Cut(prefix="a ", middle="= b", suffix="\nc = d\n")


def test_a_cut_at_a_cursor_in_the_last_line_runs_to_the_end_of_the_text() -> None:
    assert cut_line_at("a\nbc", 3) == Cut(prefix="a\nb", middle="c", suffix="")


def test_prefix_first_puts_the_suffix_before_the_middle_marker() -> None:
    tokens = arrange(Order.PSM, IDS, prefix=[10, 11], middle=[20], suffix=[30])

    assert tokens == [1, 10, 11, 2, 30, 3, 20, 0]


def test_suffix_first_joins_the_prefix_to_its_middle() -> None:
    tokens = arrange(Order.SPM, IDS, prefix=[10, 11], middle=[20], suffix=[30])

    assert tokens == [1, 2, 30, 3, 10, 11, 20, 0]


@pytest.mark.parametrize("order", Order)
def test_a_sample_ends_with_the_end_token(order: Order) -> None:
    assert arrange(order, IDS, prefix=[], middle=[], suffix=[])[-1] == IDS.end


def test_a_cut_of_lines_begins_on_a_line_that_is_not_blank() -> None:
    cuts = [cut_lines(SOURCE, random.Random(seed)) for seed in SEEDS]

    lines = {cut.prefix.count("\n") for cut in cuts}
    assert lines == {0, 1, 2, 5}
