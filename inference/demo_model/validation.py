"""The loss on whole files that training never saw, read left to right."""

from collections.abc import Sequence

import torch
from tokenizers import Tokenizer
from torch import Tensor

from inference.demo_model.batches import Row
from inference.demo_model.corpus import SourceFile
from inference.demo_model.model import Qwen3

ROWS_AT_ONCE = 8


def plain_rows(files: Sequence[SourceFile], tokenizer: Tokenizer, num_tokens: int) -> list[Row]:
    """Each file from its beginning, in rows of its own; the remainder of a file is left out."""
    rows = []
    for file in files:
        tokens: list[int] = tokenizer.encode(file.text, add_special_tokens=False).ids
        for start in range(0, len(tokens) - num_tokens, num_tokens):
            window = tokens[start : start + num_tokens + 1]
            rows.append(Row(window[:-1], window[1:], weights=[1.0] * num_tokens))
    return rows


def as_tensors(rows: Sequence[Row]) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs, labels and weights, each (rows, tokens)."""
    inputs = torch.tensor([row.inputs for row in rows])
    labels = torch.tensor([row.labels for row in rows])
    return inputs, labels, torch.tensor([row.weights for row in rows])


@torch.no_grad()
def validation_loss(model: Qwen3, rows: Sequence[Row]) -> float:
    """Mean nats per token."""
    total = 0.0
    for start in range(0, len(rows), ROWS_AT_ONCE):
        batch = rows[start : start + ROWS_AT_ONCE]
        total += model.loss(*as_tensors(batch)).item() * len(batch)
    return total / len(rows)
