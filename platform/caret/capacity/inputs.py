"""Inputs of the plan: the load, the engine's rates and the price, validated once."""

import math
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Final

from caret.foundation.environment import BadSetting

SECONDS_PER_DAY: Final = 86_400
# A larger number is most likely a typing error. Sums over so many GPUs would take minutes.
MAX_GPUS: Final = 100_000
# With inputs outside of these limits, products and quotients could overflow.
MIN_FIGURE: Final = 1e-6
MAX_FIGURE: Final = 1e9


class Queue(StrEnum):
    """The place where requests wait for a GPU; `queueing` has the formulas."""

    PINNED = "pinned"  # at the replica with the request's prefix: one M/G/1 queue per GPU
    SHARED = "shared"  # for the first free GPU: one M/G/k queue


class InvalidInput(BadSetting):
    """An input is missing or invalid. The message names it."""


@dataclass(frozen=True, slots=True)
class CapacityInputs:
    """Inputs of the plan: mean values, unless noted. A replica counts as one GPU."""

    requests_per_s: float  # sustained
    context_tokens: float = 6_000  # of a prompt
    output_tokens: float = 24  # of a completion
    hit_rate: float = 0.95  # share of prompt tokens found in the prefix cache, 0 to 1
    # Tokens that a request with a cached prefix still prefills: the typed text, and the last block
    # if it is not full.
    warm_tokens: float = 100
    prefill_tokens_per_s: float = 28_000  # of a GPU that only prefills
    decode_tokens_per_s: float = 2_500  # of a GPU, all its streams together
    stream_tokens_per_s: float = 100  # of one stream
    overhead_ms: float = 0  # part of a first token's latency besides waiting and prefill
    burst: float = 3  # the peak, as a multiple of the sustained load
    # The share of a GPU's time that a load may use; the rest keeps waits short.
    utilisation: float = 1 / 3
    target_ms: float = 100  # for the p99 of first tokens
    acceptance: float = 0.3  # share of generated tokens that are accepted, 0 to 1
    dollars_per_gpu_hour: float = 3
    num_gpus: int | None = None  # None: enough for the sustained load
    queue: Queue = Queue.PINNED

    def __post_init__(self) -> None:
        """Validate all inputs.

        Raises InvalidInput.
        """
        for name in _POSITIVE:
            _require_valid(name, getattr(self, name) > 0, "more than 0", self)
        for name in _NOT_NEGATIVE:
            _require_valid(name, getattr(self, name) >= 0, "0 or more", self)
        for name in (*_POSITIVE, *_NOT_NEGATIVE, "utilisation", "acceptance", "burst"):
            value = getattr(self, name)
            is_in_range = value == 0 or MIN_FIGURE <= value <= MAX_FIGURE
            _require_valid(name, is_in_range, f"from {MIN_FIGURE:g} to {MAX_FIGURE:g}", self)
        for name in ("hit_rate", "acceptance"):
            _require_valid(name, 0 <= getattr(self, name) <= 1, "from 0 to 1", self)
        _require_valid("utilisation", 0 < self.utilisation < 1, "more than 0 and less than 1", self)
        _require_valid("burst", self.burst >= 1, "1 or more", self)
        _require_valid(
            "warm_tokens", self.warm_tokens <= self.context_tokens, "at most context_tokens", self
        )
        if self.num_gpus is not None:
            _require_valid(
                "num_gpus", 1 <= self.num_gpus <= MAX_GPUS, f"from 1 to {MAX_GPUS:,}", self
            )

    @property
    def output_tokens_per_s(self) -> float:
        return self.requests_per_s * self.output_tokens


_POSITIVE: Final = (
    *("requests_per_s", "context_tokens", "prefill_tokens_per_s", "decode_tokens_per_s"),
    *("stream_tokens_per_s", "target_ms"),
)
_NOT_NEGATIVE: Final = ("output_tokens", "warm_tokens", "overhead_ms", "dollars_per_gpu_hour")
# The names of all numeric inputs.
NUMBERS: Final = tuple(field.name for field in fields(CapacityInputs) if field.name != "queue")


def compute_requests_per_s(*, tokens_per_day: float, output_tokens: float) -> float:
    """Return the load that generates this many tokens in a day. All hours have the same load.

    Raises InvalidInput.
    """
    if not (tokens_per_day > 0 and math.isfinite(tokens_per_day) and output_tokens > 0):
        raise InvalidInput("Tokens a day, and tokens of a completion, must be more than 0.")
    return tokens_per_day / SECONDS_PER_DAY / output_tokens


def _require_valid(name: str, is_valid: bool, requirement: str, figures: CapacityInputs) -> None:
    value = getattr(figures, name)
    # NaN is never valid, because its comparisons are false. Infinity passes some comparisons.
    if not is_valid or not math.isfinite(value):
        raise InvalidInput(f"{name} is {value:g}; it must be {requirement}.")
