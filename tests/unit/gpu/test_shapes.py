"""Models with random weights, for measurements on a GPU: their sizes and their tokens."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer

from caret.local.engines.engine import DEMO_MODEL
from inference.context.tokenization.tokenizer import load_tokenizer
from tests.gpu.shapes import LARGE, SMALL, TINY, ModelShape, write_model


def count_parameters(shape: ModelShape) -> int:
    """Return the number of weights in the matrices, which are almost all of the parameters."""
    head = shape.hidden // shape.num_heads
    # Two matrices of all heads (queries and output), and two of the KV heads (keys and values).
    attention = 2 * shape.hidden * (shape.num_heads + shape.num_kv_heads) * head
    # A feed-forward block has three matrices: gate, up and down.
    layer = attention + 3 * shape.hidden * shape.feed_forward
    num_embeddings = 1 if shape.is_tied else 2  # untied: the output layer has weights of its own
    return shape.num_layers * layer + num_embeddings * shape.vocabulary_tokens * shape.hidden


# The sizes that are published for Qwen2.5-Coder 1.5B and 7B.
@pytest.mark.parametrize(("shape", "billions"), [(SMALL, 1.5), (LARGE, 7.6)])
def test_a_shape_has_as_many_parameters_as_the_model_that_it_copies(
    shape: ModelShape, billions: float
) -> None:
    assert count_parameters(shape) / 1e9 == pytest.approx(billions, abs=0.05)


def test_every_token_has_a_text(tmp_path: Path) -> None:
    write_model(TINY, tmp_path)

    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert tokenizer.get_vocab_size() == TINY.vocabulary_tokens
    # A token that the demo tokenizer lacks has the text " w" and its ID. TINY has 8,192 tokens.
    assert tokenizer.decode([TINY.vocabulary_tokens - 1]) == " w8191"


def test_a_text_has_the_same_tokens_as_with_the_demonstration_model(tmp_path: Path) -> None:
    write_model(TINY, tmp_path)
    text = "def w8191(self, value):\n    return value + 8191\n"

    tokens = load_tokenizer(str(tmp_path)).encode(text)

    assert tokens == load_tokenizer(str(DEMO_MODEL)).encode(text)
