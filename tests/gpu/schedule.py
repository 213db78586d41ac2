"""Chooses the next step that ends within the time of a call. Pure functions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepTime:
    name: str
    engine: str  # the name of the variant that must run
    needed_s: float  # without the start of the engine


def choose_step(
    pending: Sequence[StepTime],
    *,
    left_s: float,
    running_engine: str | None,
    start_s: Mapping[str, float],
) -> StepTime | None:
    """Return the first of the pending steps that ends within `left_s`, or None.

    Steps of the running engine come first, because no other engine has to start for them.
    """
    for step in sorted(pending, key=lambda step: step.engine != running_engine):
        start = 0.0 if step.engine == running_engine else start_s[step.engine]
        if start + step.needed_s <= left_s:
            return step
    return None


def list_pending(
    steps: Sequence[StepTime], *, done: Collection[str], only: str | None
) -> list[StepTime]:
    """Return the steps that a call should run: those that are not done.

    `only` is the name of a single step to run instead, even if it is done.
    """
    if only is not None:
        return [step for step in steps if step.name == only]
    return [step for step in steps if step.name not in done]
