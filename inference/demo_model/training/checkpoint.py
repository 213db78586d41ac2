"""The state of a training run on disk. A truncated or damaged checkpoint is never loaded.

A checkpoint is a file with a SHA-256, followed by the content that the SHA-256 belongs to. It is
written to a temporary file, flushed to the disk and renamed. The last two checkpoints are kept, so
that only a few minutes are lost if one is damaged.
"""

import hashlib
import io
import os
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from inference.demo_model.model import Qwen3

NUM_KEPT = 2
DIGEST_BYTES = 32


class CheckpointError(ValueError):
    """A checkpoint cannot be used."""


@dataclass(slots=True)
class TrainingProgress:
    step: int = 0  # number of steps that are done
    elapsed_s: float = 0.0  # training time, without the pauses between two calls
    seed: int = 1
    cool_down_step: int | None = None  # the first step of the cool-down; None: there is none
    cool_down_steps: int = 0  # length of the cool-down


@dataclass(frozen=True, slots=True)
class TrainingState:
    """The parts of a run that a checkpoint keeps."""

    model: Qwen3
    optimisers: tuple[torch.optim.Optimizer, ...]
    progress: TrainingProgress


def save(training_state: TrainingState, folder: Path) -> Path:
    """Save a checkpoint, keep only the last NUM_KEPT checkpoints, and return the new file."""
    content = {
        "model": training_state.model.state_dict(),
        "optimisers": [optimiser.state_dict() for optimiser in training_state.optimisers],
        "progress": asdict(training_state.progress),
    }
    return save_content(content, folder)


def save_content(content: dict[str, Any], folder: Path) -> Path:
    """Save the content of a checkpoint like `save`."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    payload = buffer.getvalue()
    path = folder / f"checkpoint-{content['progress']['step']:08d}.pt"
    write_durably(path, hashlib.sha256(payload).digest() + payload)
    for old_checkpoint in list_checkpoints(folder)[:-NUM_KEPT]:
        old_checkpoint.unlink()
    return path


def list_checkpoints(folder: Path) -> list[Path]:
    """Return the folder's checkpoints, oldest first."""
    return sorted(folder.glob("checkpoint-????????.pt"))


def load(path: Path) -> dict[str, Any]:
    """Return the content of a checkpoint.

    Raises CheckpointError for a truncated or damaged file.
    """
    data = path.read_bytes()
    digest, payload = data[:DIGEST_BYTES], data[DIGEST_BYTES:]
    if hashlib.sha256(payload).digest() != digest:
        raise CheckpointError(f"{path} is truncated or damaged.")
    content: dict[str, Any] = torch.load(io.BytesIO(payload), "cpu", weights_only=True)
    return content


def load_newest(folder: Path) -> dict[str, Any] | None:
    """Return the content of the newest undamaged checkpoint; None: the folder has no checkpoint.

    Damaged checkpoints are renamed, so that they are neither mirrored nor counted as kept.
    Raises CheckpointError if all checkpoints are damaged.
    """
    checkpoints = list_checkpoints(folder)
    for path in reversed(checkpoints):
        try:
            return load(path)
        except CheckpointError as error:
            path.rename(path.with_suffix(".damaged"))
            print(f"{error} Using the checkpoint before it.", file=sys.stderr, flush=True)
    if checkpoints:
        raise CheckpointError(f"All checkpoints in {folder} are damaged: copy one from the mirror.")
    return None


def restore(training_state: TrainingState, content: dict[str, Any]) -> None:
    """Replace the state by the content of a checkpoint."""
    training_state.model.load_state_dict(content["model"])
    for optimiser, state in zip(training_state.optimisers, content["optimisers"], strict=True):
        capturable_flags = [group.get("capturable") for group in optimiser.param_groups]
        optimiser.load_state_dict(state)
        # The type of the rate and `capturable` depend on the device, which may have changed.
        for group, capturable in zip(optimiser.param_groups, capturable_flags, strict=True):
            group["lr"] = float(group["lr"])
            group["capturable"] = capturable
    for field, value in content["progress"].items():
        setattr(training_state.progress, field, value)


def mirror_checkpoint(run: Path, target: Path) -> None:
    """Copy the newest checkpoint and the log of `run` to `target`.

    Then delete the checkpoints of `target`, except the last two.
    """
    target.mkdir(parents=True, exist_ok=True)
    newest = list_checkpoints(run)[-1]
    write_durably(target / newest.name, newest.read_bytes())
    if (run / "log.jsonl").exists():
        shutil.copyfile(run / "log.jsonl", target / "log.jsonl")
    for old_checkpoint in list_checkpoints(target)[:-NUM_KEPT]:
        old_checkpoint.unlink()


def write_durably(path: Path, content: bytes) -> None:
    """Write a file so that a crash leaves the old file, the new one or none, but never a part."""
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
