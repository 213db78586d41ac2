"""Waiting times of requests, compared with known formulas and with a simulated queue."""

import heapq
import random

import pytest

from caret.capacity.queueing import (
    QueueUnstable,
    ServiceTime,
    WaitDistribution,
    compute_wait,
    erlang_c,
    sojourn_quantile_s,
)

NUM_ARRIVALS = 60_000


def test_requests_wait_for_one_server_as_the_pollaczek_khinchine_formula_says() -> None:
    service = ServiceTime(kinds=((0.9, 0.01), (0.1, 0.2)))  # pairs of probability and seconds
    rate = 20.0

    wait = compute_wait(rate, service, num_servers=1)

    second_moment = 0.9 * 0.01**2 + 0.1 * 0.2**2
    assert wait.mean_s == pytest.approx(rate * second_moment / (2 * (1 - rate * service.mean_s)))
    assert wait.probability == pytest.approx(rate * service.mean_s)


@pytest.mark.parametrize("num_servers", [1, 3, 40, 700, 20_000])
@pytest.mark.parametrize("utilisation", [0.02, 0.5, 0.9, 0.999])
def test_erlang_c_equals_its_recursion(num_servers: int, utilisation: float) -> None:
    """The recursion computes Erlang B, the probability of blocking. Erlang C follows from it."""
    offered_load = num_servers * utilisation
    blocked = 1.0
    for number in range(1, num_servers + 1):
        blocked = offered_load * blocked / (number + offered_load * blocked)
    expected = blocked / (1 - utilisation * (1 - blocked))

    assert erlang_c(num_servers, offered_load) == pytest.approx(expected, rel=1e-11, abs=1e-28)


def test_constant_service_times_wait_half_as_long_as_exponential_ones() -> None:
    """M/D/1 against M/M/1, whose mean wait is rho / (mu - lambda)."""
    wait = compute_wait(5.0, ServiceTime(kinds=((1.0, 0.1),)), num_servers=1)

    assert wait.mean_s == pytest.approx(0.5 * 0.5 / (10 - 5))


def test_erlang_c_equals_published_values() -> None:
    assert erlang_c(1, 0.5) == pytest.approx(0.5)
    assert erlang_c(2, 1.0) == pytest.approx(1 / 3)
    assert erlang_c(10, 8.0) == pytest.approx(0.4092, abs=1e-4)


def test_erlang_c_of_a_thousand_servers_is_a_probability() -> None:
    assert 0 < erlang_c(1_000, 990.0) < 1


@pytest.mark.parametrize("rate", [10.0, 11.0])
def test_a_load_of_at_least_the_capacity_is_unstable(rate: float) -> None:
    with pytest.raises(QueueUnstable):
        compute_wait(rate, ServiceTime(kinds=((1.0, 0.1),)), num_servers=1)


def test_zero_service_time_means_no_wait() -> None:
    wait = compute_wait(5.0, ServiceTime(kinds=((1.0, 0.0),)), num_servers=1)

    assert wait == WaitDistribution(probability=0.0, mean_s=0.0)
    assert sojourn_quantile_s(wait, ServiceTime(kinds=((1.0, 0.0),)), 0.99) == pytest.approx(
        0, abs=1e-5
    )


@pytest.mark.parametrize(
    ("share_cold", "num_servers", "load"),
    [(0.02, 1, 0.33), (0.05, 1, 0.8), (0.2, 8, 0.6), (0.05, 8, 0.9), (1.0, 8, 0.8)],
)
def test_the_99th_percentile_is_within_a_quarter_of_a_simulation(
    share_cold: float, num_servers: int, load: float
) -> None:
    # In seconds: the prefill of a warm and of a cold prompt, as in test_worked_examples.py.
    service = ServiceTime(kinds=((1 - share_cold, 0.0036), (share_cold, 0.214)))
    rate = load * num_servers / service.mean_s

    wait = compute_wait(rate, service, num_servers=num_servers)

    quantile_s = sojourn_quantile_s(wait, service, 0.99)
    assert quantile_s == pytest.approx(_simulated_p99_s(rate, service, num_servers), rel=0.25)


def _simulated_p99_s(rate: float, service: ServiceTime, num_servers: int) -> float:
    """Simulate one queue, first come first served, with `num_servers` servers."""
    rng = random.Random(20261121)
    shares, times = zip(*service.kinds, strict=True)
    free_at_s = [0.0] * num_servers
    now_s = 0.0
    stays_s: list[float] = []
    for service_s in rng.choices(times, shares, k=NUM_ARRIVALS):
        now_s += rng.expovariate(rate)
        ended_at_s = max(now_s, heapq.heappop(free_at_s)) + service_s
        heapq.heappush(free_at_s, ended_at_s)
        stays_s.append(ended_at_s - now_s)
    return sorted(stays_s)[int(0.99 * NUM_ARRIVALS)]
