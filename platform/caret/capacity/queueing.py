"""How long a request waits for a server; arrivals are Poisson, service times any.

* One server, M/G/1: the mean wait by Pollaczek and Khinchine, lambda E[S^2] / (2 (1 - rho)); exact.
  (Kleinrock, Queueing Systems I, 1975, 5.7.)
* k servers behind one queue, M/G/k: Allen and Cunneen's approximation, the wait of M/M/k (Erlang C)
  times (1 + cv^2) / 2. (Allen, Probability, Statistics, and Queueing Theory, 1990, 5.3.) With k = 1
  it is Pollaczek and Khinchine's.
* The tail: whoever waits at all does so for an exponentially distributed time. Exact for M/M/k;
  for M/G/k it is the heavy traffic limit (Kingman 1962), and the tests hold it against a
  simulation.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_MOST: Final = 1e30  # one in so many is none
_LEAST: Final = 1e-17  # of a sum that a float has the digits for


class QueueUnstable(Exception):
    """More work comes than the servers can do: the queue would grow without end."""


@dataclass(frozen=True, slots=True)
class ServiceTime:
    """A request's time at its server: one of several, each with its probability."""

    kinds: Sequence[tuple[float, float]]  # probability, seconds

    @property
    def mean_s(self) -> float:
        return sum(probability * seconds for probability, seconds in self.kinds)

    @property
    def squared_variation(self) -> float:
        """Variance over squared mean; 0 when all take equally long."""
        mean_s = self.mean_s
        if mean_s == 0:
            return 0.0
        second_moment = sum(probability * seconds**2 for probability, seconds in self.kinds)
        return max(0.0, second_moment / mean_s**2 - 1)


@dataclass(frozen=True, slots=True)
class WaitDistribution:
    probability: float  # that a request waits at all
    mean_s: float  # of all requests, those that do not wait included

    def probability_over(self, seconds: float) -> float:
        """The probability of waiting longer than `seconds`."""
        if seconds < 0:
            return 1.0
        if self.mean_s == 0:
            return 0.0
        return self.probability * math.exp(-seconds * self.probability / self.mean_s)


def compute_wait(
    arrivals_per_s: float, service: ServiceTime, *, num_servers: int
) -> WaitDistribution:
    """Raises Overloaded."""
    offered = arrivals_per_s * service.mean_s
    if offered >= num_servers:
        raise QueueUnstable
    if offered == 0:
        return WaitDistribution(probability=0.0, mean_s=0.0)
    probability = erlang_c(num_servers, offered)
    mean_of_markov_s = probability * service.mean_s / (num_servers - offered)
    return WaitDistribution(probability, mean_of_markov_s * (1 + service.squared_variation) / 2)


def erlang_c(num_servers: int, offered: float) -> float:
    """The probability that all of `num_servers` are busy, `offered` being busy in the mean.

    By Erlang's B, whose inverse is the sum of N (N - 1) ... (N - k + 1) / A^k for k from 0: terms
    above 0, so that no digits are lost. They rise until k = N - A and fall from there: some square
    roots of N are enough, where Erlang's own recursion takes N steps.
    """
    inverse = term = 1.0
    for number in range(num_servers, 0, -1):
        term *= number / offered
        inverse += term
        if inverse > _MOST:
            return 0.0
        if number < offered and term * number < inverse * _LEAST * (offered - number):
            break  # all that follows is less than a float can tell: a geometric series
    blocked = 1 / inverse
    return blocked / (1 - offered / num_servers * (1 - blocked))


def sojourn_quantile_s(wait: WaitDistribution, service: ServiceTime, quantile: float) -> float:
    """The time that `quantile` of all requests need at most, waiting and service together."""
    low_s, high_s = 0.0, max(seconds for _, seconds in service.kinds) + 1e-6
    while _slower(wait, service, high_s) > 1 - quantile:
        high_s *= 2
    for _ in range(60):  # halvings: to the last digit of a float
        middle_s = (low_s + high_s) / 2
        if _slower(wait, service, middle_s) > 1 - quantile:
            low_s = middle_s
        else:
            high_s = middle_s
    return high_s


def _slower(wait: WaitDistribution, service: ServiceTime, seconds: float) -> float:
    return sum(
        share * wait.probability_over(seconds - needed_s) for share, needed_s in service.kinds
    )
