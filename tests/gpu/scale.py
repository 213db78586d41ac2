"""The amount of work: models, lengths of prompts, numbers of requests, and the time they need."""

from dataclasses import dataclass
from typing import Final

from caret.contracts.policy import Tier
from tests.gpu.shapes import LARGE, SMALL, TINY, ModelShape


@dataclass(frozen=True, slots=True)
class Scale:
    shapes: dict[Tier, ModelShape]
    prompt_tokens: tuple[int, int]  # for the modes fim and block
    max_model_tokens: int  # of prompt and completion together
    loads: tuple[int, ...]  # multiples of streams_per_load
    streams_per_load: int  # each stream has one request in flight
    window_s: float  # of each measurement under load
    num_prompts: int  # of each length, sent both directly to the engine and through a gateway
    num_keystrokes: int
    # Cancels whose time to the end of the stream is measured. For as many further cancels, the time
    # until the engine is idle is measured.
    num_cancels: int
    num_rounds: int  # of KV offloading
    start_s: float  # estimated time of an engine's start, used until a start was measured
    step_s: float  # the time that a step needs beside its windows
    has_targets: bool  # False: results are not compared with targets


# The engines batch up to 32 requests: this is the value of the engine profiles for GPUs
# (platform/docs/engine-profiles.md). One load is 4 requests, so eight loads are a full batch. On an
# H200, six engines started at once in 135 s, `first_token` took 95 s with windows of 4 s,
# `cancellation` 20 s, and `side_by_side` more than 110 s with 20 prompts of each length. The
# estimates `start_s` and `step_s` are above these times.
REAL: Final = Scale(
    shapes={Tier.FAST: SMALL, Tier.QUALITY: LARGE},
    prompt_tokens=(2_000, 6_000),
    max_model_tokens=8_192,
    loads=(1, 2, 4, 8),
    streams_per_load=4,
    window_s=5.0,
    num_prompts=10,
    num_keystrokes=200,
    num_cancels=100,
    num_rounds=5,
    start_s=150.0,
    step_s=60.0,
    has_targets=True,
)
TINY_SCALE: Final = Scale(
    shapes={Tier.FAST: TINY, Tier.QUALITY: TINY},
    prompt_tokens=(200, 600),
    max_model_tokens=2_176,
    loads=(1, 2),
    streams_per_load=2,
    window_s=0.5,
    num_prompts=2,
    num_keystrokes=10,
    num_cancels=3,
    num_rounds=2,
    start_s=60.0,
    step_s=30.0,
    has_targets=False,
)
SCALES: Final = {"real": REAL, "tiny": TINY_SCALE}
