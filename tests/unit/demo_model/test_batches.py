"""Training documents and rows drawn from the corpus, and the tokenizer.

A row contains one document and padding. The document's `targets`, shifted by one, are the row's
`labels`: the label of a token is the next token, which the model should predict. There is one
exception. In the order prefix, suffix, answer, the label of the suffix marker is not the first
token of the suffix but the first token of the answer, so that the model computes the continuation
of the prefix there. FIRST_WEIGHT is the weight of the answer's first token as a label: for the
suffix marker, and for the token directly before the answer.

The corpus and its tokenizer are small ones for tests. An echo is a document of the same shuffled
tokens twice; its answer can only be copied.
"""

import random

import pytest
from tokenizers import Tokenizer

from inference.demo_model.fim import TrainingOrder
from inference.demo_model.token_corpus import Group
from inference.demo_model.tokenizer import (
    END_OF_TEXT,
    FIM_MIDDLE,
    FIM_PAD,
    FIM_PREFIX,
    FIM_SUFFIX,
    SPECIAL_TOKENS,
)
from inference.demo_model.training.batches import (
    ANSWER_WEIGHT,
    FIRST_WEIGHT,
    DocumentSource,
    Mixture,
    token_id,
)
from tests.unit.demo_model.corpora import small_corpus, small_tokenizer

ECHOES = Mixture({Group.PACKAGES: 1.0}, echo_share=1.0)


@pytest.fixture
def tokenizer() -> Tokenizer:
    return small_tokenizer()


def make_source(tokenizer: Tokenizer, seed: int = 1) -> DocumentSource:
    return DocumentSource(small_corpus(), tokenizer, random.Random(seed))


@pytest.mark.parametrize("num_tokens", [64, 512, 2048])
def test_a_row_has_the_requested_number_of_inputs_and_labels(
    tokenizer: Tokenizer, num_tokens: int
) -> None:
    row = make_source(tokenizer).draw_row(num_tokens)

    assert (len(row.inputs), len(row.labels)) == (num_tokens, num_tokens)


def test_each_label_is_the_next_input_except_that_of_the_suffix_marker(
    tokenizer: Tokenizer,
) -> None:
    row = make_source(tokenizer).draw_row(256)

    exceptions = {
        token
        for token, next_token, label in zip(
            row.inputs, row.inputs[1:], row.labels[:-1], strict=False
        )
        if label != next_token
    }
    assert exceptions <= {token_id(tokenizer, FIM_SUFFIX)}


def test_the_label_of_the_suffix_marker_is_the_first_token_of_the_answer(
    tokenizer: Tokenizer,
) -> None:
    source = make_source(tokenizer)
    documents = [source.draw_document(300) for _ in range(300)]

    # Only the position after the suffix marker has a target that differs from its token. This
    # target is the label of the suffix marker, because labels are shifted by one.
    documents_with_target = [
        document for document in documents if document.targets != document.tokens
    ]
    assert documents_with_target
    for document in documents_with_target:
        suffix_at = document.tokens.index(token_id(tokenizer, FIM_SUFFIX))
        middle_at = document.tokens.index(token_id(tokenizer, FIM_MIDDLE))
        assert document.targets[suffix_at + 1] == document.tokens[middle_at + 1]


def test_padding_has_no_weight(tokenizer: Tokenizer) -> None:
    rows = [make_source(tokenizer, seed).draw_row(8192) for seed in range(5)]

    pad = token_id(tokenizer, FIM_PAD)
    weights = [
        weight
        for row in rows
        for label, weight in zip(row.labels, row.weights, strict=True)
        if label == pad
    ]
    assert set(weights) == {0.0}


def test_an_end_token_has_the_weight_of_plain_text_or_of_an_answer(tokenizer: Tokenizer) -> None:
    rows = [make_source(tokenizer, seed).draw_row(256) for seed in range(20)]

    end = token_id(tokenizer, END_OF_TEXT)
    weights = [
        weight
        for row in rows
        for label, weight in zip(row.labels, row.weights, strict=True)
        if label == end
    ]
    assert ANSWER_WEIGHT in weights
    # FIRST_WEIGHT: the end token is also the first token of an empty answer.
    assert set(weights) <= {1.0, ANSWER_WEIGHT, FIRST_WEIGHT}


def test_a_document_respects_its_limit(tokenizer: Tokenizer) -> None:
    source = make_source(tokenizer)

    assert max(len(source.draw_document(100).tokens) for _ in range(300)) <= 100


def test_a_document_with_a_prefix_marker_has_one_suffix_one_middle_and_an_end_token(
    tokenizer: Tokenizer,
) -> None:
    source = make_source(tokenizer)
    documents = [source.draw_document(300).tokens for _ in range(300)]

    prefix_id = token_id(tokenizer, FIM_PREFIX)
    documents_with_prefix = [document for document in documents if prefix_id in document]
    assert len(documents_with_prefix) > 150  # the others are plain text
    for document in documents_with_prefix:
        assert document.count(token_id(tokenizer, FIM_SUFFIX)) == 1
        assert document.count(token_id(tokenizer, FIM_MIDDLE)) == 1
        assert document[-1] == token_id(tokenizer, END_OF_TEXT)


def test_the_answer_to_an_echo_occurs_in_its_prefix(tokenizer: Tokenizer) -> None:
    source = make_source(tokenizer)
    source.mixture = ECHOES

    for document in [source.draw_document(100) for _ in range(100)]:
        # The last token with FIRST_WEIGHT is the first of the answer. An earlier one may be after
        # the suffix marker.
        answer_at = len(document.weights) - document.weights[::-1].index(FIRST_WEIGHT) - 1
        before, answer = document.tokens[:answer_at], document.tokens[answer_at:-1]
        starts = range(len(before) - len(answer) + 1)
        assert any(before[start : start + len(answer)] == answer for start in starts)


def test_only_the_answer_to_an_echo_has_weight(tokenizer: Tokenizer) -> None:
    source = make_source(tokenizer)
    source.mixture = ECHOES

    assert {weight for _ in range(20) for weight in source.draw_document(100).weights} == {
        0.0,
        ANSWER_WEIGHT,
        FIRST_WEIGHT,
    }


def test_a_mixture_with_one_order_of_the_parts_draws_no_other(tokenizer: Tokenizer) -> None:
    source = make_source(tokenizer)
    source.mixture = Mixture({Group.PACKAGES: 1.0}, order=TrainingOrder.SPM_VARIANT_2)

    prefix, suffix = (token_id(tokenizer, name) for name in (FIM_PREFIX, FIM_SUFFIX))
    documents = [source.draw_document(300).tokens for _ in range(100)]
    documents_with_prefix = [document for document in documents if prefix in document]
    assert len(documents_with_prefix) > 80  # the others are plain text
    # SPM variant 2 is the only order with the suffix marker directly after the prefix marker.
    assert {tokens[tokens.index(prefix) + 1] for tokens in documents_with_prefix} == {suffix}


def test_a_row_longer_than_the_file_is_filled_with_context(tokenizer: Tokenizer) -> None:
    num_tokens = 2 * len(small_corpus().files[0])
    source = make_source(tokenizer)
    source.mixture = Mixture({Group.PACKAGES: 1.0})
    rows = [source.draw_row(num_tokens) for _ in range(20)]

    pad = token_id(tokenizer, FIM_PAD)
    assert min(row.labels.count(pad) for row in rows) < 0.1 * num_tokens


def test_context_from_another_file_comes_before_the_prefix(tokenizer: Tokenizer) -> None:
    source = make_source(tokenizer)
    documents = [source.draw_document(600).tokens for _ in range(200)]

    texts = [tokenizer.decode(tokens, skip_special_tokens=False) for tokens in documents]
    with_context = [text for text in texts if text.startswith("<|repo_name|>package\n")]
    assert with_context
    assert all("<|file_sep|>" in text.split(FIM_PREFIX)[0] for text in with_context)


def test_the_same_seed_draws_the_same_row(tokenizer: Tokenizer) -> None:
    assert make_source(tokenizer, 5).draw_row(512) == make_source(tokenizer, 5).draw_row(512)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\r\n\t x",
        "        self.x = 10\n\n\n    y",
        "ü€𝄞\u2028z",
        "a  b   c \n",
        "<|fim_prefix",
        "\x00",
    ],
)
def test_decoding_restores_every_character(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text, add_special_tokens=False).ids

    assert tokenizer.decode(ids, skip_special_tokens=False) == text


def test_digits_are_separate_tokens(tokenizer: Tokenizer) -> None:
    assert len(tokenizer.encode("10000000", add_special_tokens=False).ids) == 8


def test_special_tokens_are_one_token_each(tokenizer: Tokenizer) -> None:
    lengths = {len(tokenizer.encode(name).ids) for name in SPECIAL_TOKENS}

    assert lengths == {1}
