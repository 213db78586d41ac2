"""Trains the demonstration model within a budget of wall-clock minutes.

    python -m inference.demo_model.train --minutes 90 --out DIR

Run again with the same DIR, it goes on from the last checkpoint. SIGTERM and SIGINT save and stop;
SIGUSR1 begins the decay of the learning rate at once. The same seed draws the same documents; how
many of them fit in the budget depends on the machine.
"""

import argparse
import dataclasses
import json
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import torch
from tokenizers import Tokenizer
from torch import Tensor

from inference.demo_model import checkpoint
from inference.demo_model.batches import DocumentSource
from inference.demo_model.checkpoint import Progress, Trained
from inference.demo_model.corpus import Corpus, read_corpus, standard_library
from inference.demo_model.model import ModelShape, Qwen3
from inference.demo_model.optimiser import optimisers
from inference.demo_model.schedule import TOKENS_PER_STEP, Schedule
from inference.demo_model.tokenizer import train_tokenizer
from inference.demo_model.validation import as_tensors, plain_rows, validation_loss

CHECKPOINT_EVERY_S = 300.0
LOG_EVERY_STEPS = 10
VALIDATION_ROWS = 96


@dataclass(slots=True)
class Signals:
    """What the operator has asked for since the last step."""

    stop: bool = False
    decay: bool = False

    def listen(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGUSR1, self._on_decay)

    def _on_stop(self, number: int, frame: FrameType | None) -> None:
        self.stop = True

    def _on_decay(self, number: int, frame: FrameType | None) -> None:
        self.decay = True


class Run:
    def __init__(self, options: argparse.Namespace, signals: Signals) -> None:
        self.out: Path = options.out
        self.budget_s: float = options.minutes * 60
        self.seed: int = options.seed
        self.signals = signals
        self.schedule = Schedule()
        corpus = read_corpus(standard_library())
        self.tokenizer = _tokenizer(corpus, self.out / "tokenizer.json")
        self.rng = random.Random()
        self.source = DocumentSource(corpus.training, self.tokenizer, self.rng)
        self.validation = plain_rows(corpus.held_out, self.tokenizer, 512)[:VALIDATION_ROWS]
        self.trained = _trained(options.seed)
        if self._checkpoint_path.exists():
            checkpoint.restore(self.trained, self._checkpoint_path)
        model = self.trained.model
        self._loss: Callable[[Tensor, Tensor, Tensor], Tensor] = torch.compile(
            model.loss, dynamic=False
        )
        self._began_at = time.monotonic() - self.trained.progress.elapsed_s
        self._saved_at = time.monotonic()

    def train(self) -> None:
        recent: list[float] = []
        while not self.signals.stop and self._share() < 1.0:
            if self.signals.decay:
                self._decay_from_here()
            recent.append(self._step())
            if self.trained.progress.step % LOG_EVERY_STEPS == 0:
                self._log(loss=sum(recent) / len(recent), rate=self._rate_factor())
                recent.clear()
            if time.monotonic() - self._saved_at > CHECKPOINT_EVERY_S:
                self._save()
        self._save()

    def _step(self) -> float:
        progress = self.trained.progress
        loss = self._loss(*self._batch())
        torch.autograd.backward(loss)
        factor = self._rate_factor()
        for optimiser in self.trained.optimisers:
            for group in optimiser.param_groups:
                group["lr"] = group["peak_rate"] * factor
            optimiser.step()
            optimiser.zero_grad()
        progress.step += 1
        progress.tokens += TOKENS_PER_STEP
        self.trained.update_average()
        return loss.item()

    def _batch(self) -> tuple[Tensor, Tensor, Tensor]:
        self.rng.seed(f"{self.seed}:{self.trained.progress.step}")
        share = self._share()
        self.source.echo_share = self.schedule.echo_share_at(share)
        num_tokens = self.schedule.sequence_tokens(share)
        rows = [self.source.row(num_tokens) for _ in range(TOKENS_PER_STEP // num_tokens)]
        return as_tensors(rows)

    def _share(self) -> float:
        return (time.monotonic() - self._began_at) / self.budget_s

    def _rate_factor(self) -> float:
        return self.schedule.rate_factor(self.trained.progress.step, self._share())

    def _decay_from_here(self) -> None:
        start = min(self._share(), self.schedule.decay_start)
        self.schedule = dataclasses.replace(self.schedule, decay_start=start)
        self.signals.decay = False

    def _save(self) -> None:
        self.trained.progress.elapsed_s = time.monotonic() - self._began_at
        checkpoint.save(self.trained, self._checkpoint_path)
        self._log(validation_loss=validation_loss(self.trained.model, self.validation))
        self._saved_at = time.monotonic()

    def _log(self, **figures: float) -> None:
        progress = self.trained.progress
        elapsed_s = time.monotonic() - self._began_at
        line = {"step": progress.step, "tokens": progress.tokens, "elapsed_s": round(elapsed_s, 1)}
        line |= {name: round(value, 4) for name, value in figures.items()}
        with (self.out / "log.jsonl").open("a") as log:
            log.write(json.dumps(line) + "\n")

    @property
    def _checkpoint_path(self) -> Path:
        return self.out / "checkpoint.pt"


def _trained(seed: int) -> Trained:
    torch.manual_seed(seed)
    model = Qwen3(ModelShape())
    average = {name: weight.clone() for name, weight in model.state_dict().items()}
    return Trained(model, average, optimisers(model), Progress())


def _tokenizer(corpus: Corpus, path: Path) -> Tokenizer:
    if not path.exists():
        temporary = path.with_suffix(".tmp")
        train_tokenizer(file.text for file in corpus.training).save(str(temporary))
        temporary.replace(path)
    return Tokenizer.from_file(str(path))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="inference.demo_model.train", description=__doc__)
    parser.add_argument("--minutes", type=float, required=True, help="over all runs on DIR")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def main() -> None:
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(options.threads)
    signals = Signals()
    signals.listen()
    Run(options, signals).train()


if __name__ == "__main__":
    main()
