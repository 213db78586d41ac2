"""Learning rate, row length and mixture as functions of the step, so that a run can be resumed.

The learning rate rises in a warm-up and is then constant. It falls in a cool-down, which can begin
at any step. Training begins with short rows and many echoes (see `batches`), because both teach
copying. Long rows come later.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from inference.demo_model.token_corpus import Group
from inference.demo_model.training.batches import Mixture

TOKENS_PER_STEP = 16_384
ROW_TOKENS = (256, 512, 1024, 2048)  # the possible lengths of a row
WARM_UP_STEPS = 100
# The share of each group in the documents, before the cool-down and in it.
STABLE_SHARES: Final[Mapping[Group, float]] = {
    Group.LIBRARY: 0.07,
    Group.LIBRARY_TESTS: 0.06,
    Group.PACKAGES: 0.74,
    Group.PACKAGE_TESTS: 0.13,
}
COOL_DOWN_SHARES: Final[Mapping[Group, float]] = {
    Group.LIBRARY: 0.16,
    Group.LIBRARY_TESTS: 0.07,
    Group.PACKAGES: 0.67,
    Group.PACKAGE_TESTS: 0.10,
}


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the training."""

    until_tokens: float  # the phase ends when the run has trained this many tokens
    row_weights: tuple[int, int, int, int]  # relative number of steps with each of ROW_TOKENS
    echo_share: float  # share of echoes in the documents, from 0 to 1


PHASES = (
    Phase(until_tokens=15e6, row_weights=(25, 65, 10, 0), echo_share=0.12),
    Phase(until_tokens=float("inf"), row_weights=(15, 30, 30, 25), echo_share=0.04),
)
COOL_DOWN = Phase(until_tokens=float("inf"), row_weights=(5, 20, 40, 35), echo_share=0.02)


@dataclass(frozen=True, slots=True)
class Batch:
    """The composition of a step's batch."""

    row_tokens: int
    mixture: Mixture

    @property
    def num_rows(self) -> int:
        return TOKENS_PER_STEP // self.row_tokens


@dataclass(frozen=True, slots=True)
class TrainingSchedule:
    """The learning rate and the composition of the batch of each step."""

    seed: int
    cool_down_step: int | None = None  # the first step of the cool-down; None: there is none
    cool_down_steps: int = 0  # length of the cool-down

    @property
    def end_step(self) -> int | None:
        """Return the step before which the run ends, or None if it has no cool-down."""
        return None if self.cool_down_step is None else self.cool_down_step + self.cool_down_steps

    def rate_factor(self, step: int) -> float:
        """Return the learning rate as a share of its peak, from 0 to 1."""
        warm_up = min(1.0, (step + 1) / WARM_UP_STEPS)
        if not self._is_cooling(step) or self.end_step is None:
            return warm_up
        return warm_up * max(0.0, (self.end_step - step) / self.cool_down_steps)

    def compose_batch(self, step: int) -> Batch:
        """Return a step's batch. The same schedule and step always give the same result."""
        is_cooling = self._is_cooling(step)
        num_trained_tokens = step * TOKENS_PER_STEP
        stable = next(phase for phase in PHASES if num_trained_tokens < phase.until_tokens)
        phase = COOL_DOWN if is_cooling else stable
        rng = random.Random(f"{self.seed}:{step}:length")
        shares = COOL_DOWN_SHARES if is_cooling else STABLE_SHARES
        return Batch(
            row_tokens=rng.choices(ROW_TOKENS, phase.row_weights)[0],
            mixture=Mixture(shares, echo_share=phase.echo_share),
        )

    def _is_cooling(self, step: int) -> bool:
        return self.cool_down_step is not None and step >= self.cool_down_step
