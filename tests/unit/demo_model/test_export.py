"""Exported weights of the demonstration model: only the layers' matrices are quantised."""

import pytest

pytest.importorskip("torch", reason="torch is missing; platform/scripts/setup --dev installs it")

import torch

from inference.demo_model.export import convert_weights

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
