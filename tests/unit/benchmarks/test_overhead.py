"""The benchmark `overhead`: its comparison of a gateway with vLLM's router.

A multiple is our result divided by the router's result. The limit of a multiple is our target
divided by the router's result on the machine on which the targets were set.

`added_p50` and `added_p99` are quantiles of the time that a gateway adds to a request. `max_cpu_ms`
is its CPU time per request at full load.
"""

import json

import pytest

from tests.benchmarks.overhead import Measurements, _report_multiples
from tests.benchmarks.results import Report

ROUTER = {"added_p50": 0.5, "added_p99": 1.0, "max_cpu_ms": 0.5}
OURS = {"added_p50": 2.0, "added_p99": 20.0, "max_cpu_ms": 3.0}


def _make_measurements(values: dict[str, float]) -> Measurements:
    measurements = Measurements()
    measurements.add(**values)
    return measurements


def _report_and_parse_figures(
    capsys: pytest.CaptureFixture[str], router: dict[str, float]
) -> tuple[Report, dict[str, tuple[float, bool]]]:
    report = Report("overhead")
    caret_rows = {name: _make_measurements(OURS) for name in ("websocket", "http", "cold")}

    _report_multiples(caret_rows, _make_measurements(router), report)

    lines = map(json.loads, capsys.readouterr().out.splitlines())
    return report, {line["figure"]: (line["value"], line["passed"]) for line in lines}


def test_our_overhead_is_reported_as_a_multiple_of_the_routers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report, figures = _report_and_parse_figures(capsys, ROUTER)

    assert figures["websocket.added_p50_to_vllm-router"] == (4.0, True)  # the limit is 1.5 / 0.23
    assert figures["http.added_p99_to_vllm-router"] == (20.0, False)  # the limit is 5 / 0.37
    assert figures["http.max_cpu_ms_to_vllm-router"] == (6.0, True)  # the limit is 1.6 / 0.24
    assert figures["cold.max_cpu_ms_to_vllm-router"] == (6.0, True)  # the limit is 4 / 0.24
    assert len(figures) == 7  # three for websocket, three for http, one for cold
    assert report.has_missed_target


def test_no_multiple_is_reported_for_a_negative_overhead(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The router's overhead is a difference of two quantiles, which can be negative."""
    _, figures = _report_and_parse_figures(capsys, ROUTER | {"added_p99": -0.1})

    assert not any("p99" in figure for figure in figures)
