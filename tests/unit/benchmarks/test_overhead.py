"""The benchmark `overhead`: its comparison of a gateway with vLLM's router."""

import json

import pytest

from tests.benchmarks.overhead import Seen, _tell_multiples
from tests.benchmarks.results import Report

ROUTER = {"added_p50": 0.5, "added_p99": 1.0, "max_cpu_ms": 0.5}
OURS = {"added_p50": 2.0, "added_p99": 20.0, "max_cpu_ms": 3.0}


def _seen(values: dict[str, float]) -> Seen:
    seen = Seen()
    seen.add(**values)
    return seen


def _told(
    capsys: pytest.CaptureFixture[str], router: dict[str, float]
) -> tuple[Report, dict[str, tuple[float, bool]]]:
    report = Report("overhead")
    ours = {name: _seen(OURS) for name in ("websocket", "http", "cold")}

    _tell_multiples(ours, _seen(router), report)

    lines = map(json.loads, capsys.readouterr().out.splitlines())
    return report, {line["figure"]: (line["value"], line["passed"]) for line in lines}


def test_ours_is_told_as_a_multiple_of_the_routers(capsys: pytest.CaptureFixture[str]) -> None:
    report, told = _told(capsys, ROUTER)

    assert told["websocket.added_p50_to_vllm-router"] == (4.0, True)  # 1.5 / 0.23 is the maximum
    assert told["http.added_p99_to_vllm-router"] == (20.0, False)  # 5 / 0.37
    assert told["http.max_cpu_ms_to_vllm-router"] == (6.0, True)  # 1.6 / 0.24
    assert told["cold.max_cpu_ms_to_vllm-router"] == (6.0, True)  # 4 / 0.24
    assert len(told) == 7
    assert report.has_missed


def test_of_nothing_there_is_no_multiple(capsys: pytest.CaptureFixture[str]) -> None:
    """The router's overhead is a difference of two quantiles, which can be negative."""
    _, told = _told(capsys, ROUTER | {"added_p99": -0.1})

    assert not any("p99" in figure for figure in told)
