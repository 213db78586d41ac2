"""Checkpoints of a training run: two are kept and one is mirrored. Damaged ones are not used."""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is missing; platform/scripts/setup --dev installs it")

import torch

from inference.demo_model.model import ModelDimensions, Qwen3
from inference.demo_model.training import checkpoint
from inference.demo_model.training.checkpoint import (
    CheckpointError,
    TrainingProgress,
    TrainingState,
)
from inference.demo_model.training.optimiser import make_optimisers

TINY = ModelDimensions(
    vocabulary_tokens=32, hidden=16, num_layers=2, num_heads=2, head_dim=8, feed_forward=16
)
TOKENS = torch.arange(16).view(2, 8)


def make_initial_state(step: int = 0) -> TrainingState:
    torch.manual_seed(1)
    model = Qwen3(TINY)
    return TrainingState(model, make_optimisers(model), TrainingProgress(step=step))


def take_step(state: TrainingState) -> None:
    torch.autograd.backward(state.model.loss(TOKENS, TOKENS, torch.ones(2, 8)))
    for optimiser in state.optimisers:
        optimiser.step()
        optimiser.zero_grad()
    state.progress.step += 1


def save_steps(folder: Path, num_steps: int) -> TrainingState:
    state = make_initial_state()
    for _ in range(num_steps):
        take_step(state)
        checkpoint.save(state, folder)
    return state


def resume(folder: Path) -> TrainingState:
    state = make_initial_state()
    content = checkpoint.load_newest(folder)
    assert content is not None
    checkpoint.restore(state, content)
    return state


def truncate(path: Path) -> None:
    stored = path.read_bytes()
    path.write_bytes(stored[: len(stored) // 2])


# torch warns about the norms, whose weights stay in float32.
@pytest.mark.filterwarnings("ignore:Mismatch dtype")
def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path: Path) -> None:
    uninterrupted = save_steps(tmp_path, 3)
    after_resume = resume(tmp_path)
    take_step(uninterrupted)
    take_step(after_resume)

    assert after_resume.progress.step == 4
    pairs = zip(uninterrupted.model.parameters(), after_resume.model.parameters(), strict=True)
    assert all(torch.equal(tensor, other_tensor) for tensor, other_tensor in pairs)


def test_an_empty_folder_has_no_checkpoint(tmp_path: Path) -> None:
    assert checkpoint.load_newest(tmp_path) is None


def test_only_the_last_two_checkpoints_are_kept(tmp_path: Path) -> None:
    save_steps(tmp_path, 4)

    names = [path.name for path in checkpoint.list_checkpoints(tmp_path)]
    assert names == ["checkpoint-00000003.pt", "checkpoint-00000004.pt"]


def test_the_previous_checkpoint_is_used_if_the_newest_is_truncated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_steps(tmp_path, 2)
    newest = checkpoint.list_checkpoints(tmp_path)[-1]
    truncate(newest)

    assert resume(tmp_path).progress.step == 1
    message = f"{newest} is truncated or damaged. Using the checkpoint before it.\n"
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("num_bytes", [0, 10, 32])
def test_a_checkpoint_truncated_at_its_beginning_is_rejected(
    tmp_path: Path, num_bytes: int
) -> None:
    path = checkpoint.save(make_initial_state(), tmp_path)
    path.write_bytes(path.read_bytes()[:num_bytes])

    with pytest.raises(CheckpointError, match="is truncated or damaged"):
        checkpoint.load(path)


def test_a_folder_with_only_damaged_checkpoints_is_rejected(tmp_path: Path) -> None:
    save_steps(tmp_path, 2)
    for path in checkpoint.list_checkpoints(tmp_path):
        truncate(path)

    with pytest.raises(CheckpointError, match="copy one from the mirror"):
        checkpoint.load_newest(tmp_path)


def test_a_damaged_checkpoint_is_not_mirrored(tmp_path: Path) -> None:
    run, mirror = tmp_path / "run", tmp_path / "mirror"
    run.mkdir()
    save_steps(run, 2)
    truncate(checkpoint.list_checkpoints(run)[-1])
    resume(run)  # finds the damaged checkpoint and renames it

    checkpoint.mirror_checkpoint(run, mirror)

    assert resume(mirror).progress.step == 1


def test_the_mirror_contains_the_newest_checkpoint_and_the_log(tmp_path: Path) -> None:
    run, mirror = tmp_path / "run", tmp_path / "mirror"
    run.mkdir()
    save_steps(run, 2)
    (run / "log.jsonl").write_text("{}\n")

    checkpoint.mirror_checkpoint(run, mirror)

    assert resume(mirror).progress.step == 2
    assert (mirror / "log.jsonl").read_text() == "{}\n"
