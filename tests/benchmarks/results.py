"""Benchmark results: their statistics, and one JSON line on standard output for each."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

_NUM_RESAMPLES: Final = 2_000
_REPOSITORY: Final = Path(__file__).resolve().parents[2]


@dataclass(slots=True)
class Report:
    """Prints the results of one benchmark, and records whether all targets were met."""

    benchmark: str
    has_targets: bool = True  # False: targets are ignored, because the figures are of a tiny model
    about: Mapping[str, Any] = field(default_factory=dict)  # fields that each line contains
    lines: list[dict[str, Any]] = field(default_factory=list)  # printed so far
    has_missed_target: bool = False  # a target was missed

    def figure(self, name: str, value: float, unit: str, **more: Any) -> None:
        """Print a result. `more` are further fields of its line."""
        line = {"benchmark": self.benchmark, "figure": name, "value": rounded(value), "unit": unit}
        origin = {**self.about, "machine": machine(), "commit": commit()}
        self.lines.append(line | more | origin)
        print(json.dumps(self.lines[-1]), flush=True)

    def target(self, name: str, value: float, unit: str, *, at_most: float, **more: Any) -> None:
        """Print a result whose target is a maximum."""
        passed = value <= at_most
        self.judged(name, value, unit, passed=passed, target=f"at most {at_most:g}", **more)

    def judged(
        self, name: str, value: float, unit: str, *, passed: bool, target: str, **more: Any
    ) -> None:
        """Print a result that the caller has compared with its target."""
        if not self.has_targets:
            self.figure(name, value, unit, **more)
            return
        self.has_missed_target = self.has_missed_target or not passed
        say(f"{'pass' if passed else 'FAIL'}: {name} is {value:.4g} {unit}, target {target}")
        self.figure(name, value, unit, target=target, passed=passed, **more)

    @property
    def exit_status(self) -> int:
        return 1 if self.has_missed_target else 0


def spread(samples: Sequence[float]) -> dict[str, Any]:
    """Return p50, p99 and n. With fewer than 100 samples, p99 is close to the maximum."""
    p50, p99 = np.percentile(samples, [50, 99])
    return {"p50": rounded(p50), "p99": rounded(p99), "n": len(samples)}


def percentile(samples: Sequence[float], percent: int) -> float:
    return float(np.percentile(samples, percent))


def median(samples: Sequence[float]) -> float:
    return float(np.median(samples))


def windows(values: Sequence[float]) -> list[float]:
    """Return the rounded values, one for each window (repetition) of a measurement, in order."""
    return [rounded(value) for value in values]


def interval(samples: Sequence[float]) -> list[float]:
    """Return the 95% confidence interval of the median, by the bootstrap (Efron 1979)."""
    values = np.asarray(samples)
    resamples = np.random.default_rng(0).choice(values, size=(_NUM_RESAMPLES, len(values)))
    low, high = np.percentile(np.median(resamples, axis=1), [2.5, 97.5])
    return [rounded(low), rounded(high)]


def rounded(value: float) -> float:
    """Return the value with five significant digits."""
    return float(f"{float(value):.5g}")


def say(text: str) -> None:
    """Print progress to standard error."""
    print(text, file=sys.stderr, flush=True)


@cache
def machine() -> str:
    """Return the number and model of the cores that this process may use.

    The result of the first call is cached. So call this before a benchmark pins the process.
    """
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return f"{len(os.sched_getaffinity(0))} x {next(names, 'unknown')}"


@cache
def commit() -> str:
    """Return the short hash of the commit, and `+` if files differ from it; "" without Git."""
    command = ("git", "-C", str(_REPOSITORY), "describe", "--always", "--dirty=+", "--abbrev=7")
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:
        return ""
