"""Measures the loss on files that were not used for training.

There are five losses: of plain text from left to right, of the answers (middles) of documents in
the orders PSM, SPM and SPM variant 2 (see `fim`), and of the answers of echoes. An echo is a
document of shuffled tokens that occur twice, so that only copying finds the answer (see `batches`).
"""

import random
from collections.abc import Sequence

import torch
from tokenizers import Tokenizer
from torch import Tensor

from inference.demo_model.corpus import SourceFile
from inference.demo_model.fim import TrainingOrder
from inference.demo_model.model import Qwen3
from inference.demo_model.token_corpus import Group, encode
from inference.demo_model.training.batches import (
    ANSWER_WEIGHT,
    DocumentSource,
    Mixture,
    TrainingRow,
)

ROWS_AT_ONCE = 8
ROW_TOKENS = 512
NUM_PLAIN_ROWS = 96
NUM_ANSWER_ROWS = 48  # for each order, and for echoes


class ValidationSet:
    """The rows of each loss.

    The same files give the same rows, so the losses of all checkpoints are comparable.
    """

    def __init__(
        self, files: Sequence[SourceFile], tokenizer: Tokenizer, device: torch.device
    ) -> None:
        self._device = device
        corpus = encode(((Group.LIBRARY, "cpython", file) for file in files), tokenizer)
        shares = {Group.LIBRARY: 1.0}
        mixtures = {
            "spm_nats": Mixture(shares, order=TrainingOrder.SPM),
            "spm2_nats": Mixture(shares, order=TrainingOrder.SPM_VARIANT_2),
            "psm_nats": Mixture(shares, order=TrainingOrder.PSM),
            "echo_nats": Mixture(shares, echo_share=1.0),
        }
        self._rows = {
            "validation_loss": build_plain_rows(files, tokenizer, ROW_TOKENS)[:NUM_PLAIN_ROWS]
        }
        for name, mixture in mixtures.items():
            source = DocumentSource(corpus, tokenizer, random.Random(1))
            source.mixture = mixture
            rows = [source.draw_row(ROW_TOKENS) for _ in range(NUM_ANSWER_ROWS)]
            self._rows[name] = [_keep_answer_weights(row) for row in rows]

    @torch.no_grad()
    def measure(self, model: Qwen3) -> dict[str, float]:
        """Return each loss, in nats per token, by its name in the training log."""
        return {name: self._compute_mean_nats(model, rows) for name, rows in self._rows.items()}

    def _compute_mean_nats(self, model: Qwen3, rows: Sequence[TrainingRow]) -> float:
        nats, weight = 0.0, 0.0
        for start in range(0, len(rows), ROWS_AT_ONCE):
            batch = as_tensors(rows[start : start + ROWS_AT_ONCE])
            batch_weight = batch[2].sum().item()
            inputs, labels, weights = (part.to(self._device) for part in batch)
            nats += model.loss(inputs, labels, weights).item() * batch_weight
            weight += batch_weight
        return nats / weight


def build_plain_rows(
    files: Sequence[SourceFile], tokenizer: Tokenizer, num_tokens: int
) -> list[TrainingRow]:
    """Cut each file into rows of `num_tokens`, without the remainder at its end."""
    rows = []
    for file in files:
        tokens: list[int] = tokenizer.encode(file.text, add_special_tokens=False).ids
        for start in range(0, len(tokens) - num_tokens, num_tokens):
            window = tokens[start : start + num_tokens + 1]
            rows.append(TrainingRow(window[:-1], window[1:], weights=[1.0] * num_tokens))
    return rows


def as_tensors(rows: Sequence[TrainingRow]) -> tuple[Tensor, Tensor, Tensor]:
    """Return inputs, labels and weights, each (rows, tokens)."""
    inputs = torch.tensor([row.inputs for row in rows])
    labels = torch.tensor([row.labels for row in rows])
    return inputs, labels, torch.tensor([row.weights for row in rows])


def _keep_answer_weights(row: TrainingRow) -> TrainingRow:
    """Return the row with weight 1 for the tokens of the answer and 0 for all others.

    In PSM documents, the answer's first token is also the target right after the suffix marker (see
    `DocumentSource`). That target has a high weight, too, but is not the token that follows.
    """
    weights = [1.0 if weight >= ANSWER_WEIGHT else 0.0 for weight in row.weights]
    for index in range(len(weights) - 1):
        is_next_token = row.labels[index] == row.inputs[index + 1]
        if not is_next_token:
            weights[index] = 0.0
    return TrainingRow(row.inputs, row.labels, weights)
