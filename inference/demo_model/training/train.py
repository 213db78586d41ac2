"""Train the demonstration model, on a CPU or a GPU.

    M=inference.demo_model.training.train
    python -m $M --corpus DIR --run DIR [--mirror DIR] [--minutes N]
    python -m $M --corpus DIR --run DIR --cool-down TOKENS --to DIR

The first form trains at a constant learning rate, after a short warm-up, until it is stopped. The
next call continues from the newest checkpoint, with exactly the batches that would have come next.
SIGTERM and SIGINT save a checkpoint and stop.

The second form copies the newest checkpoint to the folder of --to. It continues the training there,
and lowers the learning rate to zero (cool-down). To resume a cool-down, pass its folder as --run.
"""

import argparse
import fcntl
import json
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TextIO

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from inference.demo_model import token_corpus
from inference.demo_model.corpus import read_corpus, standard_library
from inference.demo_model.model import ModelDimensions, Qwen3
from inference.demo_model.token_corpus import CorpusError, TokenCorpus
from inference.demo_model.training import checkpoint
from inference.demo_model.training.batches import DocumentSource
from inference.demo_model.training.checkpoint import (
    CheckpointError,
    TrainingProgress,
    TrainingState,
)
from inference.demo_model.training.optimiser import make_optimisers
from inference.demo_model.training.schedule import TOKENS_PER_STEP, TrainingSchedule
from inference.demo_model.training.steps import StepRunner, Tensors
from inference.demo_model.training.validation import ValidationSet, as_tensors

# By the type of the device: a GPU trains more in a minute than a CPU core does in half an hour.
CHECKPOINT_EVERY_S = {"cpu": 300.0, "cuda": 60.0}
VALIDATE_EVERY_S = {"cpu": 1800.0, "cuda": 60.0}  # checked when a checkpoint is saved
LOG_EVERY_STEPS = {"cpu": 10, "cuda": 100}
NUM_WORKERS_FOR_GPU = 14


class RunError(ValueError):
    """The options do not fit the state of the run, or another process trains in its folder."""


class BatchDataset(Dataset[Tensors]):
    """The batch of each step, computed from the seed and the step alone."""

    def __init__(
        self, corpus: TokenCorpus, tokenizer: Tokenizer, schedule: TrainingSchedule
    ) -> None:
        self._rng = random.Random()
        self._source = DocumentSource(corpus, tokenizer, self._rng)
        self._schedule = schedule

    def __getitem__(self, step: int) -> Tensors:
        batch = self._schedule.compose_batch(step)
        self._rng.seed(f"{self._schedule.seed}:{step}")
        self._source.mixture = batch.mixture
        return as_tensors([self._source.draw_row(batch.row_tokens) for _ in range(batch.num_rows)])


class TrainingRun:
    def __init__(self, options: argparse.Namespace) -> None:
        self.folder: Path = options.run
        self._mirror: Path | None = options.mirror
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.state = _create_state(options.seed, self.device)
        content = checkpoint.load_newest(self.folder)
        if content is not None:
            checkpoint.restore(self.state, content)
        self.schedule = _build_schedule(self.state.progress)
        corpus = token_corpus.load(options.corpus)
        self.tokenizer = Tokenizer.from_file(str(options.corpus / "tokenizer.json"))
        self._batches = BatchDataset(corpus, self.tokenizer, self.schedule)
        # Old corpora have no files for validation. Then the standard library of this interpreter
        # provides them, although it may differ from the one in the corpus.
        held_out = token_corpus.load_held_out(options.corpus)
        held_out = held_out or read_corpus(standard_library()).held_out
        self._validation = ValidationSet(held_out, self.tokenizer, self.device)
        self._steps = StepRunner(
            self.state.model,
            self.state.optimisers,
            records=self.device.type == "cuda" and not options.no_graphs,
        )
        self._end_step = _end_step(options, self.schedule)
        self._stop_at = time.monotonic() + 60 * options.minutes
        self._began_at = time.monotonic() - self.state.progress.elapsed_s
        self._saved_at = time.monotonic()
        self._validated_at = time.monotonic()
        self._is_stopping = False

    def train(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_stop)
        device = self.device.type
        losses: list[Tensor] = []
        for batch in self._remaining_batches():
            losses.append(self._train_step(batch))
            if self.state.progress.step % LOG_EVERY_STEPS[device] == 0:
                self._log_figures(loss=torch.stack(losses).mean().item())
                losses.clear()
            if time.monotonic() - self._saved_at > CHECKPOINT_EVERY_S[device]:
                self._save_checkpoint()
            if self._is_stopping or time.monotonic() > self._stop_at:
                break
        self._save_checkpoint(is_last=True)

    def _on_stop(self, number: int, frame: FrameType | None) -> None:
        self._is_stopping = True

    def _remaining_batches(self) -> Iterator[Tensors]:
        is_gpu = self.device.type == "cuda"
        steps = range(self.state.progress.step, self._end_step)
        return iter(
            DataLoader(
                self._batches,
                batch_size=None,  # an item of the data set is a batch already
                sampler=steps,
                num_workers=NUM_WORKERS_FOR_GPU if is_gpu else 0,
                pin_memory=is_gpu,
            )
        )

    def _train_step(self, batch: Tensors) -> Tensor:
        progress = self.state.progress
        loss = self._steps.run(batch, self.schedule.rate_factor(progress.step))
        progress.step += 1
        return loss

    def _save_checkpoint(self, *, is_last: bool = False) -> None:
        self.state.progress.elapsed_s = time.monotonic() - self._began_at
        checkpoint.save(self.state, self.folder)
        age_s = time.monotonic() - self._validated_at
        if is_last or age_s > VALIDATE_EVERY_S[self.device.type]:
            self._log_figures(**self._validation.measure(self.state.model))
            self._validated_at = time.monotonic()
        if self._mirror is not None:
            checkpoint.mirror_checkpoint(self.folder, self._mirror)
        self._saved_at = time.monotonic()

    def _log_figures(self, **figures: float) -> None:
        step = self.state.progress.step
        elapsed_s = time.monotonic() - self._began_at
        line = {"step": step, "tokens": step * TOKENS_PER_STEP, "elapsed_s": round(elapsed_s, 1)}
        line |= {name: round(value, 4) for name, value in figures.items()}
        with (self.folder / "log.jsonl").open("a") as log:
            log.write(json.dumps(line) + "\n")


def begin_cool_down(run: Path, target: Path, num_tokens: float) -> None:
    """Copy the newest checkpoint of `run` to `target`, and begin the cool-down at its step.

    `num_tokens`: the length of the cool-down. Raises RunError and CheckpointError.
    """
    if checkpoint.list_checkpoints(target):
        raise RunError(f"{target} has checkpoints already: resume it with --run {target}.")
    content = checkpoint.load_newest(run)
    if content is None:
        raise RunError(f"{run} has no checkpoint to cool down from.")
    progress = content["progress"]
    if progress["cool_down_step"] is not None:
        raise RunError(f"{run} is a cool-down: resume it with --run, without --cool-down.")
    progress["cool_down_step"] = progress["step"]
    progress["cool_down_steps"] = max(1, round(num_tokens / TOKENS_PER_STEP))
    target.mkdir(parents=True, exist_ok=True)
    _copy_log(run, target, last_step=progress["step"])
    checkpoint.save_content(content, target)


def _copy_log(run: Path, target: Path, *, last_step: int) -> None:
    """Copy the log without the steps that the run took after its newest checkpoint."""
    log = run / "log.jsonl"
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    lines_until_checkpoint = [line for line in lines if json.loads(line)["step"] <= last_step]
    (target / "log.jsonl").write_text("".join(lines_until_checkpoint))


def lock_folder(folder: Path) -> TextIO:
    """Lock the run's folder until the returned file is closed, and write the process ID to it.

    Raises RunError if another process holds the lock.
    """
    file = (folder / "train.pid").open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise RunError(f"Another process trains in {folder}: see train.pid.") from None
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


def _create_state(seed: int, device: torch.device) -> TrainingState:
    torch.manual_seed(seed)
    model = Qwen3(ModelDimensions()).to(device)
    return TrainingState(model, make_optimisers(model), TrainingProgress(seed=seed))


def _build_schedule(progress: TrainingProgress) -> TrainingSchedule:
    return TrainingSchedule(progress.seed, progress.cool_down_step, progress.cool_down_steps)


def _end_step(options: argparse.Namespace, schedule: TrainingSchedule) -> int:
    requested_steps = int(options.tokens / TOKENS_PER_STEP)
    return requested_steps if schedule.end_step is None else min(requested_steps, schedule.end_step)


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="inference.demo_model.training.train", description=__doc__
    )
    parser.add_argument("--corpus", type=Path, required=True, metavar="DIR")
    parser.add_argument("--run", type=Path, required=True, metavar="DIR")
    parser.add_argument(
        "--mirror", type=Path, metavar="DIR", help="folder for a copy of each new checkpoint"
    )
    # The defaults of --minutes and --tokens are so large that they limit nothing.
    parser.add_argument("--minutes", type=float, default=1e6, help="maximum duration of this call")
    parser.add_argument(
        "--tokens", type=float, default=1e11, help="stop when the run has trained this many tokens"
    )
    parser.add_argument(
        "--cool-down", type=float, metavar="TOKENS", help="tokens until the learning rate is zero"
    )
    parser.add_argument("--to", type=Path, metavar="DIR", help="folder for the cool-down")
    parser.add_argument("--seed", type=int, default=1, help="seed of a new run")
    parser.add_argument("--threads", type=int, default=1, help="number of CPU threads")
    parser.add_argument(
        "--no-graphs",
        action="store_true",
        help="record no CUDA graphs: start each kernel of a step separately",
    )
    options = parser.parse_args()
    if (options.cool_down is None) != (options.to is None):
        parser.error("--cool-down needs --to, and --to needs --cool-down")
    return options


def main() -> None:
    options = _parse_options()
    torch.set_num_threads(options.threads)
    torch.set_float32_matmul_precision("high")
    # The norms raise this warning, because their weights stay in float32.
    warnings.filterwarnings("ignore", "Mismatch dtype between input and weight")
    # Compiling takes minutes; a later start in the same folder uses the cached result.
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str((options.to or options.run) / "compiled"))
    try:
        if options.cool_down is not None:
            begin_cool_down(options.run, options.to, options.cool_down)
            options.run = options.to
        options.run.mkdir(parents=True, exist_ok=True)
        with lock_folder(options.run):
            TrainingRun(options).train()
    except (CheckpointError, CorpusError, RunError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
