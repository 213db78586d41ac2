"""The loss on whole files that were not used for training: from left to right, and of FIM
answers."""

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
NUM_ANSWER_ROWS = 48  # for each layout; as many rows of echoes (shuffled tokens that occur twice)


class ValidationSet:
    """Validation rows. The same files give the same rows, so results of all checkpoints are
    comparable."""

    def __init__(
        self, files: Sequence[SourceFile], tokenizer: Tokenizer, device: torch.device
    ) -> None:
        self._device = device
        corpus = encode(((Group.LIBRARY, "cpython", file) for file in files), tokenizer)
        shares = {Group.LIBRARY: 1.0}
        mixtures = {
            "spm_nats": Mixture(shares, order=TrainingOrder.SPM),
            "psm_nats": Mixture(shares, order=TrainingOrder.PSM),
            "echo_nats": Mixture(shares, echo_share=1.0),
        }
        self._rows = {"validation_loss": plain_rows(files, tokenizer, ROW_TOKENS)[:NUM_PLAIN_ROWS]}
        for name, mixture in mixtures.items():
            source = DocumentSource(corpus, tokenizer, random.Random(1))
            source.mixture = mixture
            rows = [source.draw_row(ROW_TOKENS) for _ in range(NUM_ANSWER_ROWS)]
            self._rows[name] = [_keep_answer_weights(row) for row in rows]

    @torch.no_grad()
    def measure(self, model: Qwen3) -> dict[str, float]:
        """Return the nats per token of each kind."""
        return {name: self._mean_nats(model, rows) for name, rows in self._rows.items()}

    def _mean_nats(self, model: Qwen3, rows: Sequence[TrainingRow]) -> float:
        nats, weight = 0.0, 0.0
        for start in range(0, len(rows), ROWS_AT_ONCE):
            batch = as_tensors(rows[start : start + ROWS_AT_ONCE])
            batch_weight = batch[2].sum().item()
            inputs, labels, weights = (part.to(self._device) for part in batch)
            nats += model.loss(inputs, labels, weights).item() * batch_weight
            weight += batch_weight
        return nats / weight


def plain_rows(
    files: Sequence[SourceFile], tokenizer: Tokenizer, num_tokens: int
) -> list[TrainingRow]:
    """Return rows of each file from its beginning, without the remainder of the file."""
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
    """Keep only the weights of the answer's tokens.

    The weights of the other text become 0. In PSM order, the answer's first token is also a target
    directly after the prefix, as a hint for training; this target does not count either.
    """
    weights = [1.0 if weight >= ANSWER_WEIGHT else 0.0 for weight in row.weights]
    for index in range(len(weights) - 1):
        if row.labels[index] != row.inputs[index + 1]:
            weights[index] = 0.0
    return TrainingRow(row.inputs, row.labels, weights)
