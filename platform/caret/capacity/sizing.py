"""Requests in flight, the GPUs that they need, and the cost."""

import math
from typing import Final

from caret.capacity.inputs import MAX_GPUS, CapacityInputs, InvalidInput
from caret.capacity.queueing import QueueUnstable
from caret.capacity.time_to_first_token import estimate_first_token

_SECONDS_PER_HOUR: Final = 3_600


def num_in_flight(requests_per_s: float, seconds: float) -> float:
    """Return the mean number of requests in flight, if they take `seconds` on average.

    This is Little's law (1961): L = lambda W.
    """
    return requests_per_s * seconds


def busy_gpus(figures: CapacityInputs, *, hit_rate: float, requests_per_s: float) -> float:
    """Return the mean number of busy GPUs. The load overloads a fleet of this size or smaller."""
    prefill_s = (1 - hit_rate) * figures.context_tokens / figures.prefill_tokens_per_s
    decode_s = figures.output_tokens / figures.decode_tokens_per_s
    return requests_per_s * (prefill_s + decode_s)


def gpus_at_utilisation(busy: float, utilisation: float) -> int:
    """Return the size of the smallest fleet in which at most the share `utilisation` is busy.

    `busy` is the mean number of busy GPUs. Raises InvalidInput beyond MAX_GPUS.
    """
    # Subtract a little, so that a rounding error never adds a GPU.
    needed = max(1.0, busy / utilisation - 1e-9)
    if needed > MAX_GPUS:
        raise InvalidInput(
            f"This load needs {math.ceil(needed):,} GPUs;"
            f" the command computes at most {MAX_GPUS:,}."
        )
    return math.ceil(needed)


def gpus_for_target(figures: CapacityInputs, *, requests_per_s: float) -> int | None:
    """Return the smallest number of GPUs that keeps the p99 of first tokens within the target.

    Return None if no number up to MAX_GPUS does.
    """

    def meets_target(num_gpus: int) -> bool:
        try:
            latency = estimate_first_token(
                figures,
                hit_rate=figures.hit_rate,
                requests_per_s=requests_per_s,
                num_gpus=num_gpus,
            )
        except QueueUnstable:
            return False
        return latency.p99_ms <= figures.target_ms

    low, high = 0, 1
    while not meets_target(high):
        if high == MAX_GPUS:
            return None
        low, high = high, min(2 * high, MAX_GPUS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets_target(middle) else (middle, high)
    return high


def dollars_per_1000_accepted(
    *, num_gpus: int, dollars_per_gpu_hour: float, output_tokens_per_s: float, acceptance: float
) -> float | None:
    """Return the cost of 1,000 accepted tokens; None if no tokens are accepted."""
    accepted_per_hour = output_tokens_per_s * _SECONDS_PER_HOUR * acceptance
    if accepted_per_hour == 0:
        return None
    return num_gpus * dollars_per_gpu_hour / accepted_per_hour * 1000
