"""A cut at a cursor, and the layout of a fill-in-the-middle sample."""

import pytest

from inference.demo_model.fim import FimCut, FimIds, TrainingOrder, arrange_document, cut_line_at

IDS = FimIds(prefix=1, suffix=2, middle=3, end=0)


def test_a_cut_at_a_cursor_ends_at_the_end_of_its_line() -> None:
    fim_cut = cut_line_at("a = b\nc = d\n", 2)

    assert fim_cut == FimCut(prefix="a ", middle="= b", suffix="\nc = d\n")


def test_a_cut_in_the_last_line_ends_at_the_end_of_the_text() -> None:
    assert cut_line_at("a\nbc", 3) == FimCut(prefix="a\nb", middle="c", suffix="")


def test_prefix_first_layout_puts_the_suffix_before_the_middle_marker() -> None:
    tokens = arrange_document(TrainingOrder.PSM, IDS, prefix=[10, 11], middle=[20], suffix=[30])

    assert tokens == [1, 10, 11, 2, 30, 3, 20, 0]


def test_suffix_first_layout_puts_the_prefix_before_the_middle_marker() -> None:
    tokens = arrange_document(TrainingOrder.SPM, IDS, prefix=[10, 11], middle=[20], suffix=[30])

    assert tokens == [2, 30, 1, 10, 11, 3, 20, 0]


def test_variant_2_of_the_suffix_first_layout_joins_the_prefix_to_its_middle() -> None:
    order = TrainingOrder.SPM_VARIANT_2
    tokens = arrange_document(order, IDS, prefix=[10, 11], middle=[20], suffix=[30])

    assert tokens == [1, 2, 30, 3, 10, 11, 20, 0]


@pytest.mark.parametrize("order", TrainingOrder)
def test_a_sample_ends_with_the_end_token(order: TrainingOrder) -> None:
    assert arrange_document(order, IDS, prefix=[], middle=[], suffix=[])[-1] == IDS.end
