"""The cuts of a tokenised file into prefix, middle and suffix, for training."""

import random

import pytest

from inference.demo_model.token_corpus import TokenFile
from inference.demo_model.training.cuts import MAX_BLOCK_LINES, CutKind, Cutter, TokenSpans
from tests.unit.demo_model.corpora import FILES, SHORT_FILE, small_corpus, small_tokenizer

SEEDS = range(60)


def make_cut(kind: CutKind, seed: int, file: TokenFile) -> TokenSpans:
    return Cutter(small_corpus(), small_tokenizer(), random.Random(seed)).cut(file, kind)


def cut_texts(kind: CutKind, seed: int, file: TokenFile) -> tuple[str, str, str]:
    """Cut the file; return the texts of prefix, middle and suffix."""
    file_cut, tokens = make_cut(kind, seed, file), small_corpus().tokens
    decode = small_tokenizer().decode
    prefix = tokens[file.start : file_cut.start].tolist() + file_cut.prefix_end
    suffix = file_cut.suffix_start + tokens[file_cut.end : file.end].tolist()
    return decode(prefix), decode(file_cut.middle), decode(suffix)


@pytest.mark.parametrize("kind", CutKind)
def test_prefix_middle_and_suffix_make_up_the_file(kind: CutKind) -> None:
    joined_texts = {"".join(cut_texts(kind, seed, small_corpus().files[0])) for seed in SEEDS}

    assert joined_texts == {FILES[0].text}


@pytest.mark.parametrize("kind", CutKind)
def test_a_file_of_one_line_can_be_cut(kind: CutKind) -> None:
    file = small_corpus().files[len(FILES)]  # SHORT_FILE comes after FILES
    joined_texts = {"".join(cut_texts(kind, seed, file)) for seed in range(10)}

    assert joined_texts == {SHORT_FILE.text}


@pytest.mark.parametrize("kind", [CutKind.LINES, CutKind.NAME, CutKind.BLOCK])
def test_a_cut_of_lines_ends_before_a_line_break(kind: CutKind) -> None:
    suffixes = [cut_texts(kind, seed, small_corpus().files[0])[2] for seed in SEEDS]

    assert all(suffix == "" or suffix.startswith("\n") for suffix in suffixes)


def test_many_cuts_begin_inside_a_word() -> None:
    cuts = [cut_texts(CutKind.LINES, seed, small_corpus().files[0]) for seed in SEEDS]

    cuts_inside_word = [
        (prefix, middle)
        for prefix, middle, _ in cuts
        if prefix[-1:].isalpha() and middle[:1].isalpha()
    ]
    assert len(cuts_inside_word) > len(SEEDS) // 8


def test_a_block_cut_begins_under_a_header_and_has_a_limited_number_of_lines() -> None:
    for seed in SEEDS:
        prefix, middle, _ = cut_texts(CutKind.BLOCK, seed, small_corpus().files[0])
        head, indent = prefix.rsplit("\n", 1)
        assert head.endswith(":")
        assert indent.isspace()
        assert 1 <= middle.count("\n") + 1 <= MAX_BLOCK_LINES


def test_a_docstring_cut_includes_the_closing_quotes_but_not_the_opening_ones() -> None:
    for seed in SEEDS:
        prefix, middle, _ = cut_texts(CutKind.DOCSTRING, seed, small_corpus().files[0])
        assert prefix.endswith('"""')
        assert middle.endswith('."""')


def test_a_prefix_has_the_same_tokens_as_the_same_text_from_an_editor() -> None:
    corpus, tokenizer = small_corpus(), small_tokenizer()
    file = corpus.files[0]
    for seed in SEEDS:
        file_cut = make_cut(CutKind.LINES, seed, file)
        tokens = corpus.tokens[file.start : file_cut.start].tolist() + file_cut.prefix_end
        assert tokens == tokenizer.encode(tokenizer.decode(tokens)).ids
