"""Waiting times of requests; arrivals are Poisson, service times have any distribution.

* One server, M/G/1: the mean wait by Pollaczek and Khinchine, lambda E[S^2] / (2 (1 - rho)), with
  arrival rate lambda, service time S, and utilisation rho; exact. (Kleinrock, Queueing Systems I,
  1975, 5.7.)
* k servers behind one queue, M/G/k: Allen and Cunneen's approximation, the wait of M/M/k (Erlang C)
  times (1 + cv^2) / 2, where cv is the coefficient of variation of S. (Allen, Probability,
  Statistics, and Queueing Theory, 1990, 5.3.) For k = 1, this equals the formula of Pollaczek and
  Khinchine.
* The tail: the waits of all requests that wait are distributed exponentially. This is exact for
  M/M/k. For M/G/k, this is the heavy traffic limit (Kingman 1962), and the tests compare it with a
  simulation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_MAX_INVERSE: Final = 1e30  # a probability of one in this many counts as zero
_MIN_SHARE: Final = 1e-17  # of a sum; adding less does not change the sum of floats


class QueueUnstable(Exception):
    """As much work arrives as the servers can do, or more: the queue would grow without limit."""


@dataclass(frozen=True, slots=True)
class ServiceTime:
    """The distribution of a request's service time: several values with their probabilities."""

    kinds: Sequence[tuple[float, float]]  # probability, seconds

    @property
    def mean_s(self) -> float:
        return sum(probability * seconds for probability, seconds in self.kinds)

    @property
    def squared_variation(self) -> float:
        """Variance divided by the squared mean; 0 if all values are equal."""
        mean_s = self.mean_s
        if mean_s == 0:
            return 0.0
        second_moment = sum(probability * seconds**2 for probability, seconds in self.kinds)
        return max(0.0, second_moment / mean_s**2 - 1)


@dataclass(frozen=True, slots=True)
class WaitDistribution:
    probability: float  # that a request must wait
    mean_s: float  # of all requests, including those that do not wait

    def probability_over(self, seconds: float) -> float:
        """Return the probability of a wait longer than `seconds`."""
        if seconds < 0:
            return 1.0
        if self.mean_s == 0:
            return 0.0
        return self.probability * math.exp(-seconds * self.probability / self.mean_s)


def compute_wait(
    arrivals_per_s: float, service: ServiceTime, *, num_servers: int
) -> WaitDistribution:
    """Compute the distribution of waits in one queue before `num_servers` servers.

    Raises QueueUnstable.
    """
    offered_load = arrivals_per_s * service.mean_s
    if offered_load >= num_servers:
        raise QueueUnstable
    if offered_load == 0:
        return WaitDistribution(probability=0.0, mean_s=0.0)
    probability = erlang_c(num_servers, offered_load)
    # The mean wait of M/M/k.
    mean_wait_mmk_s = probability * service.mean_s / (num_servers - offered_load)
    return WaitDistribution(probability, mean_wait_mmk_s * (1 + service.squared_variation) / 2)


def erlang_c(num_servers: int, offered_load: float) -> float:
    """Return the probability that all servers are busy if `offered_load` are busy on average.

    The result is computed from Erlang's B. With N servers and an offered load of A, the inverse of
    B is the sum of N (N - 1) ... (N - k + 1) / A^k for k from 0. All terms are positive, so no
    digits are lost. The terms rise until k = N - A, and fall from there. The loop ends when the sum
    exceeds _MAX_INVERSE, or when the remaining terms no longer change the sum. The number of steps
    is therefore a small multiple of the square root of N. Erlang's own recursion takes N steps.
    """
    inverse = term = 1.0
    for number in range(num_servers, 0, -1):
        term *= number / offered_load
        inverse += term
        if inverse > _MAX_INVERSE:
            return 0.0
        if number < offered_load and term * number < inverse * _MIN_SHARE * (offered_load - number):
            # The rest is less than a geometric series whose sum is below a float's precision.
            break
    blocked = 1 / inverse
    return blocked / (1 - offered_load / num_servers * (1 - blocked))


def sojourn_quantile_s(wait: WaitDistribution, service: ServiceTime, quantile: float) -> float:
    """Return the time within which a share of requests is served, waits included.

    `quantile` is this share, 0 to 1.
    """
    # `high_s` must not be 0, even if all service times are 0, because it is doubled below.
    low_s, high_s = 0.0, max(seconds for _, seconds in service.kinds) + 1e-6
    while _probability_over(wait, service, high_s) > 1 - quantile:
        high_s *= 2
    for _ in range(60):  # halvings, down to a float's precision
        middle_s = (low_s + high_s) / 2
        if _probability_over(wait, service, middle_s) > 1 - quantile:
            low_s = middle_s
        else:
            high_s = middle_s
    return high_s


def _probability_over(wait: WaitDistribution, service: ServiceTime, seconds: float) -> float:
    """Return the probability that wait and service together take longer than `seconds`."""
    return sum(
        probability * wait.probability_over(seconds - service_s)
        for probability, service_s in service.kinds
    )
