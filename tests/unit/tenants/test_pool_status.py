"""Pools as reported by several gateways: summed values, and values of single engines."""

from datetime import date
from typing import Any

import pytest

from caret.contracts.policy import Mode
from tenants.fleet.pools.capacity_inputs import compute_measured_inputs
from tenants.fleet.pools.cost import compute_fleet_cost
from tenants.fleet.pools.daily_usage import PoolCounts, compute_replica_seconds_a_day
from tenants.fleet.pools.draining import find_emptied_pools
from tenants.fleet.pools.pool_status import PoolStatus, build_pool_statuses
from tenants.fleet.pools.scraping.gateway_scraper import Scrape
from tenants.fleet.pools.scraping.installation_status import (
    InstallationStatus,
    KeyFigures,
    compute_key_figures,
)
from tenants.fleet.pools.scraping.metric_samples import MetricSamples, merge_samples, parse_metrics
from tenants.fleet.pools.scraping.recent_scrapes import RecentScrapes

# The metrics page of a gateway with the replicas one:1 and two:1.
GATEWAY_PAGE = """\
caret_pool{pool="fast",tier="fast",model="qwen"} 1.0
caret_pool{pool="quality",tier="quality",model="qwen"} 1.0
caret_pool_replica_info{pool="fast",replica="one:1",speculation="ngram"} 1.0
caret_pool_replica_info{pool="fast",replica="two:1"} 1.0
caret_pool_replica_info{pool="quality",replica="two:1"} 1.0
caret_pool_requests_in_flight{pool="fast"} 6.0
caret_pool_concurrency_limit{pool="fast"} 10.0
caret_replica_requests_in_flight{replica="one:1"} 4.0
caret_replica_requests_in_flight{replica="two:1"} 2.0
caret_replica_circuit_state{replica="one:1",circuit="closed"} 1.0
caret_replica_circuit_state{replica="two:1",circuit="open"} 1.0
caret_replica_circuit_state{replica="two:1",circuit="closed"} 0.0
caret_replica_cooldown_seconds{replica="two:1"} 1.5
caret_replica_drained{replica="one:1"} 1.0
caret_replica_ejected{replica="one:1"} 0.0
caret_replica_ejected{replica="two:1"} 1.0
caret_engine_up{replica="one:1"} 1.0
caret_engine_up{replica="two:1"} 0.0
caret_engine_requests_running{replica="one:1"} 9.0
caret_engine_requests_waiting{replica="one:1"} 3.0
caret_engine_kv_cache_usage_ratio{replica="one:1"} 0.5
caret_engine_prefix_cache_queries_total{replica="one:1"} 1000.0
caret_engine_prefix_cache_hits_total{replica="one:1"} 900.0
caret_speculation_acceptance{pool="fast",language="python"} 0.6
caret_speculation_fallback{pool="fast",language="python"} 0.0
caret_speculation_fallback{pool="fast",language="go"} 1.0
caret_shed_requests_total{pool="fast",mode="inline",trigger="prefetch"} 4.0
caret_shed_requests_total{pool="fast",mode="fim",trigger="automatic"} 1.0
caret_shed_requests_total{pool="quality",mode="chat",trigger="manual"} 0.0
caret_prompt_tokens_with_cache_info_total{pool="fast",mode="inline"} 100.0
caret_cached_tokens_total{pool="fast",mode="inline"} 80.0
caret_prompt_tokens_with_cache_info_total{pool="fast",mode="warm_up"} 900.0
caret_cached_tokens_total{pool="fast",mode="warm_up"} 0.0
caret_assembled_prompts_total{pool="fast",mode="inline"} 50.0
caret_prompt_tokens_total{pool="fast",mode="inline"} 5000.0
caret_generated_tokens_total{pool="fast",mode="inline"} 500.0
caret_first_token_seconds_bucket{pool="fast",mode="inline",le="0.1"} 50.0
caret_first_token_seconds_bucket{pool="fast",mode="inline",le="0.25"} 100.0
caret_first_token_seconds_bucket{pool="fast",mode="inline",le="+Inf"} 100.0
caret_completions_total{mode="inline",finish_reason="stop"} 60.0
caret_completions_total{mode="inline",finish_reason="cancelled"} 30.0
caret_completions_total{mode="inline",finish_reason="superseded"} 10.0
caret_outcomes_total{event="shown"} 50.0
caret_outcomes_total{event="accepted"} 10.0
caret_outcomes_total{event="partially_accepted"} 5.0
"""
# The page of a second gateway, which has measured another acceptance of speculative tokens.
OTHER_GATEWAY_PAGE = GATEWAY_PAGE.replace(
    'acceptance{pool="fast",language="python"} 0.6', 'acceptance{pool="fast",language="python"} 0.8'
)


REJECTED = (
    'caret_replica_rejected{pool="fast",replica="three:1",reason="block_size",actual="16",'
    'expected="32"} 1.0\n'
)


def _installation(*pages: str | None, window_s: float | None = 100.0) -> InstallationStatus:
    """Return the status from metrics pages; None is a gateway that does not respond.

    The counters on the pages count what happened in the last `window_s` seconds.
    """
    readings = [
        Scrape(f"http://{n}", None if page is None else parse_metrics(page), "")
        for n, page in enumerate(pages)
    ]
    reachable = [reading.samples for reading in readings if reading.samples is not None]
    samples = merge_samples(reachable)
    return InstallationStatus(
        readings, RecentScrapes(samples, window_s), build_pool_statuses(readings, samples)
    )


def _pools(*pages: str | None) -> dict[str, PoolStatus]:
    return {pool.name: pool for pool in _installation(*pages).pools}


def test_values_of_gateways_are_summed_and_engines_counted_once() -> None:
    fast = _pools(GATEWAY_PAGE, OTHER_GATEWAY_PAGE)["fast"]
    replica = fast.replicas[0]

    assert (fast.num_in_flight, fast.limit, fast.load) == (12, 20, 0.6)
    assert (replica.num_in_flight, replica.running, replica.waiting, replica.kv_usage) == (
        8,
        9,
        3,
        0.5,
    )
    assert fast.acceptance == {"python": pytest.approx(0.7)}


def test_a_pool_names_its_speculating_replicas_and_the_languages_without_speculation() -> None:
    pools = _pools(GATEWAY_PAGE, OTHER_GATEWAY_PAGE)

    assert [replica.speculation for replica in pools["fast"].replicas] == ["ngram", ""]
    assert pools["fast"].has_speculation
    assert pools["fast"].fallback_languages == {"go"}
    assert not pools["quality"].has_speculation


def test_each_replica_has_its_health() -> None:
    first, second = _pools(GATEWAY_PAGE, OTHER_GATEWAY_PAGE)["fast"].replicas

    assert (first.is_up, first.num_gateways_open, first.cooldown_s, first.is_drained) == (
        True,
        0,
        None,
        True,
    )
    assert (first.num_gateways_ejected, second.num_gateways_ejected) == (0, 2)
    assert (second.is_up, second.num_gateways_open, second.cooldown_s, second.is_drained) == (
        False,
        2,
        1.5,
        False,
    )
    assert (first.is_healthy, second.is_healthy) == (True, False)
    assert first.hit_rate == pytest.approx(0.9)
    assert second.hit_rate is None


def test_a_pool_lists_its_own_replicas_and_its_shed_requests_most_frequent_first() -> None:
    pools = _pools(GATEWAY_PAGE)

    assert [replica.name for replica in pools["quality"].replicas] == ["two:1"]
    assert list(pools["fast"].shed.items()) == [("prefetch", 4), ("automatic", 1)]
    assert pools["quality"].shed == {}
    assert pools["quality"].hit_rate is None


def test_warm_ups_do_not_count_for_the_hit_rate() -> None:
    assert _pools(GATEWAY_PAGE)["fast"].hit_rate == pytest.approx(0.8)


def test_first_tokens_are_compared_with_the_target_of_their_mode() -> None:
    (first,) = _pools(GATEWAY_PAGE)["fast"].first_tokens

    assert (first.mode, first.count, first.target_ms) == (Mode.INLINE, 100, 100)
    assert first.p50_ms == pytest.approx(100)
    # Half of the values are up to 100 ms, the others up to 250 ms: 100 + 150 * 49 / 50.
    assert first.p99_ms == pytest.approx(247)
    assert first.is_over


def test_an_unreachable_gateway_does_not_affect_the_others() -> None:
    installation = _installation(GATEWAY_PAGE, None)

    assert (len(installation.reachable), len(installation.unreachable)) == (1, 1)
    assert installation.pools == _installation(GATEWAY_PAGE).pools


def test_the_key_figures_are_calculated() -> None:
    figures = compute_key_figures(_installation(GATEWAY_PAGE, OTHER_GATEWAY_PAGE))

    assert [first_token.mode for first_token in figures.first_tokens] == [Mode.INLINE]
    assert figures.cancellation == pytest.approx(0.4)
    assert figures.hit_rate == pytest.approx(0.8)
    assert figures.acceptance == pytest.approx(0.3)
    assert (figures.load, figures.busiest) == (0.6, "fast")
    assert (figures.num_waiting, figures.kv_usage) == (3, 0.5)


def test_without_gateways_there_are_no_key_figures() -> None:
    assert compute_key_figures(_installation()) == KeyFigures(
        first_tokens=[],
        cancellation=None,
        hit_rate=None,
        acceptance=None,
        load=None,
        busiest=None,
        num_waiting=0,
        kv_usage=None,
    )


def test_measured_inputs_for_the_capacity_planner() -> None:
    installation = _installation(GATEWAY_PAGE, OTHER_GATEWAY_PAGE)

    assert compute_measured_inputs(installation, pool="fast") == {
        "context_tokens": 100,
        "output_tokens": 10,
        "requests_per_s": 1.0,
        "hit_rate": pytest.approx(0.8),
    }
    assert compute_measured_inputs(installation, pool="quality") == {}


def test_without_a_window_there_is_no_request_rate() -> None:
    assert "requests_per_s" not in compute_measured_inputs(
        _installation(GATEWAY_PAGE, window_s=None), pool=None
    )


def test_the_capacity_planner_gets_the_number_of_available_replicas() -> None:
    healthy = GATEWAY_PAGE.replace('up{replica="two:1"} 0.0', 'up{replica="two:1"} 1.0')

    inputs = compute_measured_inputs(_installation(healthy), pool=None)

    assert inputs["num_gpus"] == 1  # the other replica is drained


@pytest.mark.parametrize(
    ("drained", "emptied"),
    [([], []), (["one:1"], ["fast"]), (["three:1"], [])],
)
def test_removing_its_last_replica_empties_a_pool(drained: list[str], emptied: list[str]) -> None:
    replicas_by_pool = {"fast": frozenset({"one:1", "two:1"}), "other": frozenset({"three:1"})}

    assert find_emptied_pools("two:1", drained, replicas_by_pool) == emptied


DAY, BEFORE = date(2026, 3, 2), date(2026, 3, 1)


def _cost(**fields: Any) -> Any:
    defaults: dict[str, Any] = {
        "seconds_a_day": {"fast": 86_400},
        "hour_cents": 200,
        "num_days": 7,
    }
    # The counts are requests, prompt tokens, generated tokens and accepted tokens.
    days = {
        DAY: {"fast": PoolCounts(10, 1_000, 500, 100), "": PoolCounts(9, 0, 0, 0)},
        BEFORE: {"fast": PoolCounts(10, 1_000, 500, 140), "slow": PoolCounts(1, 10, 5, 0)},
    }
    measured_seconds = {DAY: {"fast": 7_200}}  # for which replicas ran, by day and pool
    return compute_fleet_cost(days, measured_seconds, **(defaults | fields))


def test_the_price_of_the_hours_is_divided_by_the_accepted_tokens() -> None:
    cost = _cost()

    (fast, slow) = cost.rows
    # Two hours were measured on one day. The other day counts as one replica for 24 hours.
    assert (fast.pool, fast.replica_hours, fast.cost_cents) == ("fast", 26.0, 5_200.0)
    assert fast.cents_per_1000_accepted == pytest.approx(5_200 / 240 * 1000)
    assert (slow.cost_cents, slow.cents_per_1000_accepted) == (0, None)
    assert cost.total.counts == PoolCounts(21, 2_010, 1_005, 240)
    assert (cost.num_measured, cost.num_days) == (1, 7)


def test_a_replica_of_two_pools_is_paid_once() -> None:
    """A day has 86,400 seconds. Replica two:1 counts half for each of its two pools."""
    up = GATEWAY_PAGE.replace('up{replica="two:1"} 0.0', 'up{replica="two:1"} 1.0')

    assert compute_replica_seconds_a_day(_installation(up)) == {"fast": 129_600, "quality": 43_200}
    assert compute_replica_seconds_a_day(_installation(GATEWAY_PAGE)) == {
        "fast": 86_400,
        "quality": 0,
    }


def test_missing_samples_have_no_series() -> None:
    assert MetricSamples({}).series == {}


def test_a_rejected_replica_is_listed_once_with_its_reason() -> None:
    pools = _installation(
        GATEWAY_PAGE + REJECTED, OTHER_GATEWAY_PAGE + REJECTED, OTHER_GATEWAY_PAGE
    ).pools

    (rejected,) = pools[0].rejected
    assert (rejected.name, rejected.num_gateways) == ("three:1", 2)
    assert (rejected.reason, rejected.actual, rejected.expected) == ("block_size", "16", "32")
    assert pools[1].rejected == []
    assert "three:1" not in {replica.name for replica in pools[0].replicas}
