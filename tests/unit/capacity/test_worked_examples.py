"""The capacity model gives the results of the examples in Caret's specification.

Their results imply assumptions that the examples do not state. A warm prompt has 84 to 112 tokens
left to prefill. A request takes 450 ms, which is the time of a cold prefill and of 24 tokens at 100
tokens a second; therefore, 900 requests are in flight. A fleet of 12 to 17 GPUs has a utilisation
of a third; at full utilisation, 4 to 6 GPUs would be enough.
"""

import pytest

from caret.capacity.inputs import CapacityInputs, compute_requests_per_s
from caret.capacity.plan import compute_plan
from caret.capacity.sizing import busy_gpus, dollars_per_1000_accepted, num_in_flight
from caret.capacity.time_to_first_token import cold_ms, warm_ms

BILLION = 1e9
MODEL_7B = CapacityInputs(
    requests_per_s=2_000,
    context_tokens=6_000,
    prefill_tokens_per_s=28_000,
    output_tokens=24,
    stream_tokens_per_s=100,
)


def test_six_thousand_tokens_are_prefilled_in_214_ms() -> None:
    assert cold_ms(MODEL_7B) == pytest.approx(214, abs=0.5)


@pytest.mark.parametrize(("warm_tokens", "expected_ms"), [(84, 3), (100, 3.57), (112, 4)])
def test_a_warm_prompt_takes_three_to_four_ms(warm_tokens: int, expected_ms: float) -> None:
    figures = CapacityInputs(requests_per_s=1, context_tokens=6_000, warm_tokens=warm_tokens)

    assert warm_ms(figures) == pytest.approx(expected_ms, abs=0.01)


def test_2000_requests_a_second_of_450_ms_are_900_in_flight() -> None:
    assert num_in_flight(2_000, 0.45) == 900


def test_a_cold_fleet_without_queueing_has_about_900_requests_in_flight() -> None:
    stay_s = cold_ms(MODEL_7B) / 1000 + MODEL_7B.output_tokens / MODEL_7B.stream_tokens_per_s

    assert num_in_flight(2_000, stay_s) == pytest.approx(900, rel=0.01)


def test_a_billion_tokens_a_day_are_11_500_a_second() -> None:
    per_s = compute_requests_per_s(tokens_per_day=BILLION, output_tokens=24) * 24

    assert per_s == pytest.approx(11_500, rel=0.01)


@pytest.mark.parametrize(
    ("decode_tokens_per_s", "sustained", "peak"),
    [(3_000, 12, 35), (2_000, 17, 50)],
    ids=["fast engine", "slow engine"],
)
def test_a_billion_tokens_a_day_need_12_to_17_gpus_and_35_to_50_at_triple_load(
    decode_tokens_per_s: float, sustained: float, peak: float
) -> None:
    """The whole prompt is cached: the example counts only generated tokens."""
    figures = CapacityInputs(
        requests_per_s=compute_requests_per_s(tokens_per_day=BILLION, output_tokens=24),
        hit_rate=1.0,
        decode_tokens_per_s=decode_tokens_per_s,
    )

    busy = busy_gpus(figures, hit_rate=1.0, requests_per_s=figures.requests_per_s)

    # The example rounds its results. In whole GPUs, the fast engine needs 12 (35 at triple load)
    # and the slow one 18 (53 at triple load).
    assert busy / figures.utilisation == pytest.approx(sustained, rel=0.05)
    assert 3 * busy / figures.utilisation == pytest.approx(peak, rel=0.05)


def test_sixty_gpus_cost_14_thousandths_of_a_dollar_per_thousand_accepted_tokens() -> None:
    cost = dollars_per_1000_accepted(
        num_gpus=60, dollars_per_gpu_hour=3, output_tokens_per_s=11_500, acceptance=0.3
    )

    assert cost == pytest.approx(0.014, abs=0.0005)


def test_the_plan_of_the_whole_example_agrees_with_its_parts() -> None:
    plan = compute_plan(
        CapacityInputs(
            requests_per_s=compute_requests_per_s(tokens_per_day=BILLION, output_tokens=24),
            hit_rate=1.0,
            decode_tokens_per_s=3_000,
            num_gpus=60,
        )
    )

    assert (plan.sustained.gpus, plan.burst.gpus) == (12, 35)
    assert plan.dollars_per_hour == 180
    assert plan.dollars_per_1000_accepted == pytest.approx(0.014, abs=0.0005)


def test_p95_of_warm_first_tokens_of_the_quality_tier_is_61_ms() -> None:
    figures = CapacityInputs(
        requests_per_s=compute_requests_per_s(tokens_per_day=0.2 * BILLION, output_tokens=150),
        context_tokens=6_000,
        output_tokens=150,
        hit_rate=0.93,
        warm_tokens=300,
        target_ms=500,
    )

    (row,) = [row for row in compute_plan(figures).hit_rates if row.hit_rate == figures.hit_rate]

    assert row.sustained is not None
    assert row.sustained.p95_ms == pytest.approx(61, abs=1)
