"""What a training run needs to go on after a cut, written so that no cut leaves half a file."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from inference.demo_model.model import Qwen3

AVERAGE_EVERY_STEPS = 10
AVERAGE_SHARE = 0.01  # of the new weights, each time


@dataclass(slots=True)
class Progress:
    step: int = 0
    tokens: int = 0
    elapsed_s: float = 0.0  # over all runs, pauses between them not counted


@dataclass(frozen=True, slots=True)
class Trained:
    """The parts of a run that a checkpoint keeps."""

    model: Qwen3
    average: dict[str, Tensor]  # a moving mean of the weights; tensors are updated in place
    optimisers: tuple[torch.optim.Optimizer, ...]
    progress: Progress

    def update_average(self) -> None:
        if self.progress.step % AVERAGE_EVERY_STEPS:
            return
        for name, weight in self.model.state_dict().items():
            self.average[name].lerp_(weight, AVERAGE_SHARE)


def save(trained: Trained, path: Path) -> None:
    content = {
        "model": trained.model.state_dict(),
        "average": trained.average,
        "optimisers": [optimiser.state_dict() for optimiser in trained.optimisers],
        "progress": asdict(trained.progress),
    }
    temporary = path.with_suffix(".tmp")
    torch.save(content, temporary)
    temporary.replace(path)


def load(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = torch.load(path, weights_only=True)
    return content


def restore(trained: Trained, path: Path) -> None:
    content = load(path)
    trained.model.load_state_dict(content["model"])
    for name, weight in content["average"].items():
        trained.average[name].copy_(weight)
    for optimiser, state in zip(trained.optimisers, content["optimisers"], strict=True):
        optimiser.load_state_dict(state)
    for field, value in content["progress"].items():
        setattr(trained.progress, field, value)
