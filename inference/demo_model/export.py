"""Write the newest checkpoint as a folder that vLLM and transformers can load.

    python -m inference.demo_model.export --run DIR --corpus DIR --to inference/demo_model/weights

The layers' matrices are stored as INT8 (compressed-tensors, W8A8), with a scale for each output
channel; with --bfloat16, they are not quantised. All other weights are stored as bfloat16. Each
file is written to a temporary folder and then moved, so that an engine never reads an incomplete
file. While files are moved, the folder has no `config.json`: an engine that starts in this time
fails, and does not combine files of two exports.
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

from inference.demo_model import tokenizer as special_tokens
from inference.demo_model.model import ModelDimensions, Qwen3
from inference.demo_model.training import checkpoint
from inference.demo_model.training.batches import token_id
from inference.demo_model.training.checkpoint import CheckpointError

INT8_MAX = 127
WEIGHTS_FOLDER = Path(__file__).parent / "weights"
_CONFIG = "config.json"


def export(run: Path, corpus: Path, target: Path, *, is_quantised: bool) -> None:
    """Write the newest checkpoint of the folder `run` to the folder `target`.

    The tokenizer comes from the folder `corpus`. Raises CheckpointError.
    """
    content = checkpoint.load_newest(run)
    if content is None:
        raise CheckpointError(f"{run} has no checkpoint.")
    dimensions = ModelDimensions()
    require_dimensions(content["model"], dimensions)
    tokenizer = Tokenizer.from_file(str(corpus / "tokenizer.json"))
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        folder = Path(name)
        weights = convert_weights(content["model"], is_quantised=is_quantised)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        tokenizer.save(str(folder / "tokenizer.json"))
        config = build_model_config(dimensions, tokenizer)
        if is_quantised:
            config["quantization_config"] = build_quantization_config()
        _write_json(folder / _CONFIG, config)
        _write_json(folder / "tokenizer_config.json", build_tokenizer_config(dimensions))
        _write_json(folder / "generation_config.json", build_generation_config(tokenizer))
        move_files(folder, target)


def require_dimensions(weights: dict[str, Tensor], dimensions: ModelDimensions) -> None:
    """Raise CheckpointError if the weights belong to a model of other dimensions."""
    with torch.device("meta"):  # tensors without content
        expected = Qwen3(dimensions).state_dict()
    expected_shapes = {name: weight.shape for name, weight in expected.items()}
    if {name: weight.shape for name, weight in weights.items()} != expected_shapes:
        raise CheckpointError("The checkpoint is of a model with other dimensions.")


def move_files(folder: Path, target: Path) -> None:
    """Move the files of an exported model to `target`; its `config.json` is replaced last."""
    (target / _CONFIG).unlink(missing_ok=True)
    for path in sorted(folder.iterdir(), key=lambda path: path.name == _CONFIG):
        path.chmod(0o644)  # an engine may run as another user
        path.replace(target / path.name)


def build_model_config(dimensions: ModelDimensions, tokenizer: Tokenizer) -> dict[str, Any]:
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": dimensions.vocabulary_tokens,
        "hidden_size": dimensions.hidden,
        "intermediate_size": dimensions.feed_forward,
        "num_hidden_layers": dimensions.num_layers,
        "num_attention_heads": dimensions.num_heads,
        "num_key_value_heads": dimensions.num_kv_heads,
        "head_dim": dimensions.head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": dimensions.max_positions,
        "rope_theta": dimensions.rope_theta,
        "rms_norm_eps": dimensions.norm_epsilon,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "tie_word_embeddings": True,
        "use_sliding_window": False,
        "torch_dtype": "bfloat16",
        **_build_end_and_pad(tokenizer),
    }


def build_tokenizer_config(dimensions: ModelDimensions) -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": special_tokens.END_OF_TEXT,
        "pad_token": special_tokens.FIM_PAD,
        "additional_special_tokens": list(special_tokens.SPECIAL_TOKENS),
        "model_max_length": dimensions.max_positions,
        "clean_up_tokenization_spaces": False,
    }


def build_generation_config(tokenizer: Tokenizer) -> dict[str, Any]:
    return {"do_sample": False, **_build_end_and_pad(tokenizer)}


def _build_end_and_pad(tokenizer: Tokenizer) -> dict[str, int]:
    return {
        "eos_token_id": token_id(tokenizer, special_tokens.END_OF_TEXT),
        "pad_token_id": token_id(tokenizer, special_tokens.FIM_PAD),
    }


def build_quantization_config() -> dict[str, Any]:
    """Return the configuration of W8A8: weights and activations of 8 bits.

    Weights have a scale for each output channel, activations one for each token.
    """
    eight_bits = {"num_bits": 8, "type": "int", "symmetric": True}
    scheme = {
        "targets": ["Linear"],
        "weights": {**eight_bits, "strategy": "channel", "dynamic": False},
        "input_activations": {**eight_bits, "strategy": "token", "dynamic": True},
    }
    return {
        "quant_method": "compressed-tensors",
        "format": "int-quantized",
        "quantization_status": "compressed",
        "ignore": ["lm_head"],
        "config_groups": {"group_0": scheme},
    }


def convert_weights(weights: dict[str, Tensor], *, is_quantised: bool) -> dict[str, Tensor]:
    """Return the tensors to store, with their names in vLLM.

    `weights` has no output layer: the model uses its embedding as the output layer, too.
    """
    tensors = {}
    for name, weight in weights.items():
        if is_quantised and weight.ndim == 2 and name.startswith("layers."):  # a layer's matrix
            # The lower limit prevents a division by zero.
            scale = (weight.abs().amax(dim=1, keepdim=True).clamp(min=1e-8) / INT8_MAX).bfloat16()
            rounded = (weight / scale.float()).round().clamp(-INT8_MAX, INT8_MAX)
            tensors[f"model.{name}"] = rounded.to(torch.int8)
            tensors[f"model.{name}_scale"] = scale
        else:
            tensors[f"model.{name}"] = weight.to(torch.bfloat16)
    return tensors


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(prog="inference.demo_model.export", description=__doc__)
    parser.add_argument("--run", type=Path, required=True, metavar="DIR", help="folder of the run")
    parser.add_argument(
        "--to", type=Path, default=WEIGHTS_FOLDER, metavar="DIR", help="folder for the model"
    )
    parser.add_argument(
        "--corpus", type=Path, required=True, metavar="DIR", help="folder with the tokenizer"
    )
    parser.add_argument(
        "--bfloat16",
        action="store_true",
        help="store bfloat16 weights, twice as large, for comparison",
    )
    options = parser.parse_args()
    export(options.run, options.corpus, options.to, is_quantised=not options.bfloat16)


if __name__ == "__main__":
    main()
