"""The capacity plan: all results of `manage.py capacity`, computed once for table and JSON."""

from dataclasses import dataclass
from typing import Final

from caret.capacity.inputs import CapacityInputs, InvalidInput
from caret.capacity.queueing import QueueUnstable
from caret.capacity.sizing import (
    busy_gpus,
    dollars_per_1000_accepted,
    gpus_at_utilisation,
    gpus_for_target,
    num_in_flight,
)
from caret.capacity.time_to_first_token import (
    FirstTokenLatency,
    cold_ms,
    estimate_first_token,
    warm_ms,
)

TABLE_HIT_RATES: Final = (0.0, 0.5, 0.7, 0.8, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99)


@dataclass(frozen=True, slots=True)
class HitRateRow:
    hit_rate: float
    sustained: FirstTokenLatency | None  # None: the load overloads the fleet
    burst: FirstTokenLatency | None  # None: the load overloads the fleet
    min_gpus: int  # with fewer, the sustained load's queue grows without limit
    gpus: int  # for the sustained load at the configured utilisation


@dataclass(frozen=True, slots=True)
class CapacityLoad:
    """The sustained load or the burst (the peak in the table), and its needs."""

    requests_per_s: float
    num_in_flight: float | None  # by Little's law; None: the load overloads the fleet
    busy_gpus: float  # mean number of GPUs that are busy
    gpus: int  # at the configured utilisation
    gpus_for_target: int | None  # None: no number of GPUs keeps the p99 within the target


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    figures: CapacityInputs
    num_gpus: int  # size of the fleet: as given, or enough for the sustained load
    cold_ms: float  # prefill time of a cold request
    warm_ms: float  # prefill time of a warm request
    sustained: CapacityLoad
    burst: CapacityLoad
    hit_rates: tuple[HitRateRow, ...]  # rows of the table, ascending, including the given hit rate
    # The lowest hit rate whose sustained p99 is within the target; None: there is none.
    min_hit_rate: float | None
    dollars_per_hour: float  # of the fleet
    dollars_per_1000_accepted: float | None  # None: nothing is accepted


def compute_plan(figures: CapacityInputs) -> CapacityPlan:
    """Compute the plan.

    Raises InvalidInput if the given fleet cannot serve the sustained load, or if a load needs more
    than MAX_GPUS.
    """
    busy = busy_gpus(figures, hit_rate=figures.hit_rate, requests_per_s=figures.requests_per_s)
    needed = gpus_at_utilisation(busy, figures.utilisation)
    num_gpus = figures.num_gpus or needed
    if busy >= num_gpus:
        gpus = "1 GPU" if num_gpus == 1 else f"{num_gpus:,} GPUs"
        raise InvalidInput(
            f"{figures.requests_per_s:,.6g} requests/s are more than {gpus} can do:"
            f" they need at least {_count_stable_gpus(busy):,}; at a utilisation of"
            f" {figures.utilisation:.0%}, {needed:,} are needed."
        )
    return CapacityPlan(
        figures=figures,
        num_gpus=num_gpus,
        cold_ms=cold_ms(figures),
        warm_ms=warm_ms(figures),
        sustained=_compute_load(figures, figures.requests_per_s, num_gpus),
        burst=_compute_load(figures, figures.requests_per_s * figures.burst, num_gpus),
        hit_rates=tuple(
            compute_hit_rate_row(figures, rate, num_gpus)
            for rate in sorted({*TABLE_HIT_RATES, figures.hit_rate})
        ),
        min_hit_rate=_find_min_hit_rate(figures, num_gpus),
        dollars_per_hour=num_gpus * figures.dollars_per_gpu_hour,
        dollars_per_1000_accepted=dollars_per_1000_accepted(
            num_gpus=num_gpus,
            dollars_per_gpu_hour=figures.dollars_per_gpu_hour,
            output_tokens_per_s=figures.output_tokens_per_s,
            acceptance=figures.acceptance,
        ),
    )


def _compute_load(figures: CapacityInputs, requests_per_s: float, num_gpus: int) -> CapacityLoad:
    busy = busy_gpus(figures, hit_rate=figures.hit_rate, requests_per_s=requests_per_s)
    first_token = _estimate_or_none(figures, figures.hit_rate, requests_per_s, num_gpus)
    decode_s = figures.output_tokens / figures.stream_tokens_per_s
    return CapacityLoad(
        requests_per_s=requests_per_s,
        num_in_flight=(
            num_in_flight(requests_per_s, first_token.mean_ms / 1000 + decode_s)
            if first_token
            else None
        ),
        busy_gpus=busy,
        gpus=gpus_at_utilisation(busy, figures.utilisation),
        gpus_for_target=gpus_for_target(figures, requests_per_s=requests_per_s),
    )


def compute_hit_rate_row(figures: CapacityInputs, hit_rate: float, num_gpus: int) -> HitRateRow:
    """Compute a row. Raises InvalidInput if this needs more than MAX_GPUS."""
    sustained_per_s = figures.requests_per_s
    busy = busy_gpus(figures, hit_rate=hit_rate, requests_per_s=sustained_per_s)
    burst_per_s = sustained_per_s * figures.burst
    return HitRateRow(
        hit_rate=hit_rate,
        sustained=_estimate_or_none(figures, hit_rate, sustained_per_s, num_gpus),
        burst=_estimate_or_none(figures, hit_rate, burst_per_s, num_gpus),
        min_gpus=_count_stable_gpus(busy),
        gpus=gpus_at_utilisation(busy, figures.utilisation),
    )


def _estimate_or_none(
    figures: CapacityInputs, hit_rate: float, requests_per_s: float, num_gpus: int
) -> FirstTokenLatency | None:
    """Estimate the latency; None if the load overloads the fleet."""
    try:
        return estimate_first_token(
            figures, hit_rate=hit_rate, requests_per_s=requests_per_s, num_gpus=num_gpus
        )
    except QueueUnstable:
        return None


def _count_stable_gpus(busy: float) -> int:
    """Return the smallest number of GPUs above `busy`, the mean number of busy GPUs."""
    return int(busy) + 1


def _find_min_hit_rate(figures: CapacityInputs, num_gpus: int) -> float | None:
    """Return the lowest hit rate that keeps the sustained p99 within the target, or None."""

    def meets_target(hit_rate: float) -> bool:
        latency = _estimate_or_none(figures, hit_rate, figures.requests_per_s, num_gpus)
        return latency is not None and latency.p99_ms <= figures.target_ms

    if not meets_target(1.0):
        return None
    low, high = 0.0, 1.0
    if meets_target(low):
        return low
    for _ in range(30):  # halvings: the result is exact to 1e-9
        middle = (low + high) / 2
        low, high = (low, middle) if meets_target(middle) else (middle, high)
    return high
