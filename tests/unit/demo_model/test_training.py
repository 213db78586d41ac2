"""Resumed training runs, and cool-downs, which continue a run with a falling learning rate."""

from dataclasses import asdict
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is missing; platform/scripts/setup --dev installs it")

import torch

from inference.demo_model.training import checkpoint
from inference.demo_model.training.checkpoint import TrainingProgress
from inference.demo_model.training.schedule import TOKENS_PER_STEP, TrainingSchedule
from inference.demo_model.training.train import (
    BatchDataset,
    RunError,
    begin_cool_down,
    lock_folder,
)
from tests.unit.demo_model.corpora import small_corpus, small_tokenizer

COOL_DOWN_TOKENS = 100 * TOKENS_PER_STEP


def make_batches(seed: int = 1) -> BatchDataset:
    return BatchDataset(small_corpus(), small_tokenizer(), TrainingSchedule(seed))


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """Return the folder of a training run with a checkpoint of step 40."""
    folder = tmp_path / "run"
    folder.mkdir()
    checkpoint.save_content({"progress": asdict(TrainingProgress(step=40))}, folder)
    return folder


def test_a_resumed_run_gets_the_same_batch_as_an_uninterrupted_one() -> None:
    uninterrupted, resumed = make_batches(), make_batches()
    for step in range(3):
        uninterrupted[step]  # computes the batch, as training does

    pairs = zip(uninterrupted[3], resumed[3], strict=True)
    assert all(torch.equal(tensor, other_tensor) for tensor, other_tensor in pairs)


def test_another_seed_gives_other_batches() -> None:
    inputs, _labels, _weights = make_batches(seed=1)[0]
    other_inputs, _labels, _weights = make_batches(seed=2)[0]

    assert not torch.equal(inputs, other_inputs)


def test_a_cool_down_begins_at_the_step_of_the_newest_checkpoint(
    run_folder: Path, tmp_path: Path
) -> None:
    begin_cool_down(run_folder, tmp_path / "cool", COOL_DOWN_TOKENS)

    content = checkpoint.load_newest(tmp_path / "cool")
    assert content is not None
    progress = content["progress"]
    assert (progress["cool_down_step"], progress["cool_down_steps"]) == (40, 100)


def test_a_cool_down_copies_the_log_up_to_its_first_step(run_folder: Path, tmp_path: Path) -> None:
    (run_folder / "log.jsonl").write_text('{"step": 40}\n{"step": 50}\n')

    begin_cool_down(run_folder, tmp_path / "cool", COOL_DOWN_TOKENS)

    assert (tmp_path / "cool" / "log.jsonl").read_text() == '{"step": 40}\n'


def test_a_cool_down_of_a_cool_down_is_rejected(run_folder: Path, tmp_path: Path) -> None:
    begin_cool_down(run_folder, tmp_path / "cool", COOL_DOWN_TOKENS)

    with pytest.raises(RunError, match="is a cool-down"):
        begin_cool_down(tmp_path / "cool", tmp_path / "again", COOL_DOWN_TOKENS)


def test_a_cool_down_does_not_change_the_run(run_folder: Path, tmp_path: Path) -> None:
    begin_cool_down(run_folder, tmp_path / "cool", COOL_DOWN_TOKENS)

    content = checkpoint.load_newest(run_folder)
    assert content is not None
    assert content["progress"]["cool_down_step"] is None


def test_a_cool_down_does_not_overwrite_an_earlier_one(run_folder: Path, tmp_path: Path) -> None:
    begin_cool_down(run_folder, tmp_path / "cool", COOL_DOWN_TOKENS)

    with pytest.raises(RunError, match="has checkpoints already"):
        begin_cool_down(run_folder, tmp_path / "cool", COOL_DOWN_TOKENS)


def test_a_cool_down_needs_a_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no checkpoint to cool down from"):
        begin_cool_down(tmp_path, tmp_path / "cool", COOL_DOWN_TOKENS)


def test_two_processes_cannot_train_in_one_folder(run_folder: Path) -> None:
    with lock_folder(run_folder), pytest.raises(RunError, match="Another process trains"):
        lock_folder(run_folder)
