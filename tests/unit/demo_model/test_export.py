"""The export of the demonstration model: its weights, and the order in which files are replaced.

Only the layers' matrices are quantised.
"""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is missing; platform/scripts/setup --dev installs it")

import torch

from inference.demo_model.export import convert_weights, move_files, require_dimensions
from inference.demo_model.model import ModelDimensions, Qwen3
from inference.demo_model.training.checkpoint import CheckpointError

WEIGHTS = {
    "embed_tokens.weight": torch.randn(8, 4),
    "layers.0.mlp.up_proj.weight": torch.randn(6, 4)
    * torch.tensor([[0.01], [1], [5], [1], [1], [0]]),  # channels of different magnitudes
    "norm.weight": torch.ones(4),
}
MATRIX = "layers.0.mlp.up_proj.weight"


def test_a_quantised_matrix_is_close_to_the_trained_one_in_each_channel() -> None:
    stored = convert_weights(WEIGHTS, is_quantised=True)

    scale = stored[f"model.{MATRIX}_scale"].float()
    difference = stored[f"model.{MATRIX}"].float() * scale - WEIGHTS[MATRIX]
    assert stored[f"model.{MATRIX}"].dtype is torch.int8
    assert (difference.abs() <= 1.01 * scale).all()  # about one step of the quantised values


def test_embedding_and_norms_are_not_quantised() -> None:
    stored = convert_weights(WEIGHTS, is_quantised=True)

    assert stored["model.embed_tokens.weight"].dtype is torch.bfloat16
    assert stored["model.norm.weight"].dtype is torch.bfloat16


def test_without_quantisation_everything_is_bfloat16() -> None:
    stored = convert_weights(WEIGHTS, is_quantised=False)

    assert {weight.dtype for weight in stored.values()} == {torch.bfloat16}
    assert set(stored) == {f"model.{name}" for name in WEIGHTS}


def test_a_checkpoint_of_other_dimensions_is_rejected() -> None:
    dimensions = ModelDimensions(vocabulary_tokens=32, hidden=16, num_layers=2, feed_forward=16)
    weights = Qwen3(dimensions).state_dict()

    require_dimensions(weights, dimensions)
    with pytest.raises(CheckpointError, match="other dimensions"):
        require_dimensions(weights, ModelDimensions())


def make_model_folder(folder: Path, content: str) -> Path:
    folder.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (folder / name).write_text(content)
    return folder


def test_an_export_replaces_all_files(tmp_path: Path) -> None:
    new_model = make_model_folder(tmp_path / "new", "new")
    target = make_model_folder(tmp_path / "target", "old")

    move_files(new_model, target)

    assert {path.name: path.read_text() for path in target.iterdir()} == {
        "config.json": "new",
        "model.safetensors": "new",
        "tokenizer.json": "new",
    }


def test_an_interrupted_export_leaves_no_configuration(tmp_path: Path) -> None:
    new_model = make_model_folder(tmp_path / "new", "new")
    target = make_model_folder(tmp_path / "target", "old")
    # A folder with this name cannot be replaced by a file.
    (target / "model.safetensors").unlink()
    (target / "model.safetensors").mkdir()

    with pytest.raises(IsADirectoryError):
        move_files(new_model, target)

    assert not (target / "config.json").exists()
