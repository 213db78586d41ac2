"""Plans of the capacity model: the GPUs and the hit rate that a load needs, and its latency."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caret.capacity.inputs import (
    MAX_FIGURE,
    MAX_GPUS,
    MIN_FIGURE,
    NUMBERS,
    CapacityInputs,
    InvalidInput,
    Queue,
    compute_requests_per_s,
)
from caret.capacity.plan import compute_plan
from caret.capacity.plot import draw_plot


@pytest.mark.parametrize(
    ("invalid_input", "input_name"),
    [
        ({"requests_per_s": 0}, "requests_per_s"),
        ({"requests_per_s": -5}, "requests_per_s"),
        ({"requests_per_s": math.nan}, "requests_per_s"),
        ({"requests_per_s": math.inf}, "requests_per_s"),
        ({"hit_rate": 1.01}, "hit_rate"),
        ({"hit_rate": -0.1}, "hit_rate"),
        ({"acceptance": 30}, "acceptance"),
        ({"utilisation": 1}, "utilisation"),
        ({"burst": 0.5}, "burst"),
        ({"prefill_tokens_per_s": 0}, "prefill_tokens_per_s"),
        ({"dollars_per_gpu_hour": -1}, "dollars_per_gpu_hour"),
        ({"warm_tokens": 7_000}, "warm_tokens"),  # more than the 6,000 tokens of the prompt
        ({"num_gpus": 0}, "num_gpus"),
        ({"overhead_ms": math.inf}, "overhead_ms"),
        ({"requests_per_s": 1e300}, "requests_per_s"),
        ({"context_tokens": 1e300}, "context_tokens"),
        ({"burst": 1e300}, "burst"),
        ({"utilisation": 1e-300}, "utilisation"),
        ({"acceptance": 5e-324}, "acceptance"),
        ({"prefill_tokens_per_s": 1e-300}, "prefill_tokens_per_s"),
    ],
)
def test_the_error_about_an_impossible_input_names_it(
    invalid_input: dict[str, Any], input_name: str
) -> None:
    with pytest.raises(InvalidInput, match=input_name):
        CapacityInputs(**({"requests_per_s": 10} | invalid_input))


@given(
    figures=st.dictionaries(
        st.sampled_from([name for name in NUMBERS if name != "num_gpus"]),
        st.sampled_from([0.0, MIN_FIGURE, 0.5, 1.0, 1e3, MAX_FIGURE]),
        max_size=6,
    ),
    queue=st.sampled_from(Queue),
)
def test_any_inputs_are_either_planned_and_plotted_or_rejected(
    figures: dict[str, float], queue: Queue
) -> None:
    try:
        fields: dict[str, Any] = {"requests_per_s": 10, "queue": queue} | figures
        plan = compute_plan(CapacityInputs(**fields))
    except InvalidInput:
        return

    assert draw_plot(plan, steps=5).svg


@pytest.mark.parametrize("tokens", [0, -1, math.nan, math.inf])
def test_an_impossible_number_of_tokens_is_rejected(tokens: float) -> None:
    with pytest.raises(InvalidInput):
        compute_requests_per_s(tokens_per_day=tokens, output_tokens=24)


def test_a_fleet_that_is_too_small_is_rejected_with_the_size_needed() -> None:
    with pytest.raises(
        InvalidInput, match=r"they need at least 41; at a utilisation of 33%, 122 are needed"
    ):
        compute_plan(CapacityInputs(requests_per_s=2_000, num_gpus=10))


def test_a_load_beyond_the_largest_fleet_is_rejected() -> None:
    with pytest.raises(InvalidInput, match=f"at most {MAX_GPUS:,}"):
        compute_plan(CapacityInputs(requests_per_s=MAX_FIGURE))


def test_a_hit_rate_that_overloads_the_fleet_has_a_gpu_count_but_no_times() -> None:
    plan = compute_plan(CapacityInputs(requests_per_s=2_000))

    (cold,) = (row for row in plan.hit_rates if row.hit_rate == 0)

    assert cold.sustained is None
    assert cold.min_gpus > plan.num_gpus


def test_the_p99_falls_as_the_hit_rate_rises() -> None:
    plan = compute_plan(CapacityInputs(requests_per_s=20, num_gpus=20))

    times = [row.sustained.p99_ms for row in plan.hit_rates if row.sustained]

    assert len(times) == len(plan.hit_rates)
    assert times == sorted(times, reverse=True)


def test_the_minimum_hit_rate_leaves_one_request_in_a_hundred_cold() -> None:
    """The target is for the p99, so one request in a hundred may be slower.

    With so many GPUs, no request waits: each takes the time of a warm or of a cold prefill.
    """
    plan = compute_plan(CapacityInputs(requests_per_s=0.01, num_gpus=1_000))

    assert plan.min_hit_rate is not None
    # A prompt of 6,000 tokens has 100 left to prefill if it is warm, and all of them if it is cold.
    share_cold = ((1 - plan.min_hit_rate) * 6_000 - 100) / 5_900
    assert share_cold == pytest.approx(0.01, abs=0.001)


def test_no_number_of_gpus_meets_the_target_if_half_of_the_prompts_are_cold() -> None:
    plan = compute_plan(CapacityInputs(requests_per_s=10, hit_rate=0.5))

    assert plan.sustained.gpus_for_target is None


def test_an_attainable_target_has_a_minimum_number_of_gpus() -> None:
    plan = compute_plan(CapacityInputs(requests_per_s=2_000, hit_rate=0.98))

    fewest = plan.sustained.gpus_for_target
    assert fewest is not None
    enough = compute_plan(CapacityInputs(requests_per_s=2_000, hit_rate=0.98, num_gpus=fewest))
    fewer = compute_plan(CapacityInputs(requests_per_s=2_000, hit_rate=0.98, num_gpus=fewest - 1))
    assert enough.min_hit_rate is not None
    assert fewer.min_hit_rate is not None
    assert enough.min_hit_rate <= 0.98 < fewer.min_hit_rate


def test_a_shared_queue_waits_less_than_separate_queues() -> None:
    separate = compute_plan(CapacityInputs(requests_per_s=2_000))
    shared = compute_plan(CapacityInputs(requests_per_s=2_000, queue=Queue.SHARED))

    (shared_wait,) = (row.sustained for row in shared.hit_rates if row.hit_rate == 0.95)
    (separate_wait,) = (row.sustained for row in separate.hit_rates if row.hit_rate == 0.95)

    assert shared_wait is not None
    assert separate_wait is not None
    assert shared_wait.mean_ms < separate_wait.mean_ms


def test_a_burst_that_overloads_the_fleet_has_no_number_in_flight() -> None:
    plan = compute_plan(CapacityInputs(requests_per_s=2_000, num_gpus=50))

    assert plan.burst.num_in_flight is None
    assert plan.burst.gpus > plan.num_gpus


def test_zero_acceptance_has_no_price_per_accepted_token() -> None:
    plan = compute_plan(CapacityInputs(requests_per_s=10, acceptance=0))

    assert plan.dollars_per_1000_accepted is None


def test_a_fully_cached_load_without_output_needs_one_gpu() -> None:
    plan = compute_plan(CapacityInputs(requests_per_s=10, hit_rate=1, output_tokens=0))

    assert plan.num_gpus == 1
