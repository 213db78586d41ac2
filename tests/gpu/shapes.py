"""Model folders without weights: vLLM makes random weights (`--load-format dummy`).

Random weights take no disk space and almost no time to load. vLLM applies the profile's
quantization to them, as it does to real weights. Tensors of the same shape get the same values. A
greedy completion therefore soon alternates between two tokens; a completion with temperature 1 is
random text.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from caret.local.engines.engine import DEMO_MODEL


@dataclass(frozen=True, slots=True)
class ModelShape:
    name: str
    hidden: int  # width of a layer
    feed_forward: int  # width inside of a feed-forward block
    num_layers: int
    num_heads: int
    num_kv_heads: int
    vocabulary_tokens: int
    is_tied: bool  # the output layer has the weights of the embedding


# The shapes of Qwen2.5-Coder.
SMALL: Final = ModelShape(
    "1.5b",
    hidden=1_536,
    feed_forward=8_960,
    num_layers=28,
    num_heads=12,
    num_kv_heads=2,
    vocabulary_tokens=151_936,
    is_tied=True,
)
LARGE: Final = ModelShape(
    "7b",
    hidden=3_584,
    feed_forward=18_944,
    num_layers=28,
    num_heads=28,
    num_kv_heads=4,
    vocabulary_tokens=152_064,
    is_tied=False,
)
# Not the shape of a real model. It is for a quick check of the measurement itself.
TINY: Final = ModelShape(
    "tiny",
    hidden=128,
    feed_forward=256,
    num_layers=2,
    num_heads=2,
    num_kv_heads=1,
    vocabulary_tokens=8_192,
    is_tied=True,
)


def write_model(shape: ModelShape, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / "config.json", _make_config(shape))
    _write_json(folder / "tokenizer.json", _make_tokenizer(shape.vocabulary_tokens))
    tokenizer_config = (DEMO_MODEL / "tokenizer_config.json").read_text()
    (folder / "tokenizer_config.json").write_text(tokenizer_config)


def _make_config(shape: ModelShape) -> dict[str, Any]:
    return {
        # Not Qwen2: for that model, transformers replaces the rules of the tokenizer with its own,
        # and the gateway rejects an engine with another tokenizer. Qwen3 has the same layers, with
        # norms of queries and keys instead of biases.
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": shape.vocabulary_tokens,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.feed_forward,
        "num_hidden_layers": shape.num_layers,
        "num_attention_heads": shape.num_heads,
        "num_key_value_heads": shape.num_kv_heads,
        "head_dim": shape.hidden // shape.num_heads,
        "hidden_act": "silu",
        "max_position_embeddings": 32_768,
        "rope_theta": 1_000_000.0,
        "rms_norm_eps": 1e-6,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "tie_word_embeddings": shape.is_tied,
        "use_sliding_window": False,
        "torch_dtype": "bfloat16",
        "eos_token_id": 0,
    }


def _make_tokenizer(num_tokens: int) -> dict[str, Any]:
    """Return the demonstration model's tokenizer with more tokens, which no text contains.

    The tokenizer has the FIM markers of Qwen2.5-Coder.

    With fewer tokens, the model's output layer would be faster than that of the real model. A model
    with random weights generates any token, so each token must have a text: for a token without
    text, the gateway sends nothing.
    """
    tokenizer: dict[str, Any] = json.loads((DEMO_MODEL / "tokenizer.json").read_text())
    vocabulary: dict[str, int] = tokenizer["model"]["vocab"]
    for number in range(len(vocabulary), num_tokens):
        vocabulary[f"Ġw{number}"] = number  # Ġ is the space of byte-level tokenizers
    return tokenizer


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content) + "\n")
