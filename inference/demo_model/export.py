"""Writes a checkpoint as a folder that vLLM and transformers load by its name.

    python -m inference.demo_model.export --run DIR --to inference/demo_model/weights

Each file is written beside its place and renamed, so an engine never reads half of one.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

from inference.demo_model import checkpoint, tokenizer
from inference.demo_model.batches import token_id
from inference.demo_model.model import ModelShape

WEIGHTS_FOLDER = Path(__file__).parent / "weights"


def export(run: Path, target: Path, *, use_average: bool) -> None:
    content = checkpoint.load(run / "checkpoint.pt")
    trained = Tokenizer.from_file(str(run / "tokenizer.json"))
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        folder = Path(name)
        weights = content["average" if use_average else "model"]
        save_file(_as_stored(weights), folder / "model.safetensors", metadata={"format": "pt"})
        trained.save(str(folder / "tokenizer.json"))
        _write_json(folder / "config.json", model_config(ModelShape(), trained))
        _write_json(folder / "tokenizer_config.json", tokenizer_config(ModelShape()))
        _write_json(folder / "generation_config.json", generation_config(trained))
        for path in folder.iterdir():
            path.chmod(0o644)
            path.replace(target / path.name)


def model_config(shape: ModelShape, trained: Tokenizer) -> dict[str, Any]:
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": shape.vocabulary_tokens,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.feed_forward,
        "num_hidden_layers": shape.num_layers,
        "num_attention_heads": shape.num_heads,
        "num_key_value_heads": shape.num_kv_heads,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": shape.max_positions,
        "rope_theta": shape.rope_theta,
        "rms_norm_eps": shape.norm_epsilon,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "tie_word_embeddings": True,
        "use_sliding_window": False,
        "torch_dtype": "bfloat16",
        **_end_and_pad(trained),
    }


def tokenizer_config(shape: ModelShape) -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": tokenizer.END_OF_TEXT,
        "pad_token": tokenizer.FIM_PAD,
        "additional_special_tokens": list(tokenizer.SPECIAL_TOKENS),
        "model_max_length": shape.max_positions,
        "clean_up_tokenization_spaces": False,
    }


def generation_config(trained: Tokenizer) -> dict[str, Any]:
    return {"do_sample": False, **_end_and_pad(trained)}


def _end_and_pad(trained: Tokenizer) -> dict[str, int]:
    return {
        "eos_token_id": token_id(trained, tokenizer.END_OF_TEXT),
        "pad_token_id": token_id(trained, tokenizer.FIM_PAD),
    }


def _as_stored(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The output layer is tied to the embedding, so it is not stored."""
    return {f"model.{name}": weight.to(torch.bfloat16) for name, weight in weights.items()}


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(prog="inference.demo_model.export", description=__doc__)
    parser.add_argument("--run", type=Path, required=True, metavar="DIR", help="train's --out")
    parser.add_argument("--to", type=Path, default=WEIGHTS_FOLDER, metavar="DIR")
    parser.add_argument("--average", action="store_true", help="the mean of the recent weights")
    options = parser.parse_args()
    export(options.run, options.to, use_average=options.average)


if __name__ == "__main__":
    main()
