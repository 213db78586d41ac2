"""Samples of Prometheus metrics pages: sums, increases and quantiles."""

import pytest

from tenants.fleet.pools.scraping.metric_samples import (
    Labels,
    MetricSamples,
    compute_counter_increase,
    compute_quantile_s,
    merge_samples,
    parse_metrics,
)

PAGE = """\
# TYPE caret_completions_total counter
caret_completions_total{mode="fim",finish_reason="stop"} 7.0
caret_completions_total{mode="inline",finish_reason="stop"} 5.0
caret_completions_total{mode="inline",finish_reason="shed"} 2.0
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1000.0
"""


def _histogram(**counts: float) -> MetricSamples:
    """Return a histogram of the metric `first`.

    `b100=50` means 50 values up to 100 ms; `inf` is the number of all values.
    """
    buckets: dict[Labels, float] = {
        (("le", "+Inf" if name == "inf" else str(int(name[1:]) / 1000)),): float(value)
        for name, value in counts.items()
    }
    return MetricSamples({"first_bucket": buckets})


def test_samples_are_summed_by_labels() -> None:
    samples = parse_metrics(PAGE)

    assert samples.sum("caret_completions_total") == 14
    assert samples.sum("caret_completions_total", mode="inline") == 7
    assert samples.sum("caret_completions_total", mode="chat") == 0
    assert samples.max("caret_completions_total", finish_reason="stop") == 7
    assert samples.max("caret_nothing") is None
    assert samples.values_of("caret_completions_total", "mode") == ["fim", "inline"]
    assert samples.started_s == 1000


def test_a_page_without_metrics_is_rejected() -> None:
    with pytest.raises(ValueError, match=r".+"):  # with any message
        parse_metrics("<html>\n{{{ 1\n")


def test_samples_of_gateways_are_summed() -> None:
    merged = merge_samples([parse_metrics(PAGE), parse_metrics(PAGE)])

    assert merged.sum("caret_completions_total", mode="fim") == 14


def test_a_counter_that_fell_was_reset() -> None:
    before = MetricSamples({"a_total": {(): 100.0}, "b_total": {(): 5.0}})
    after = MetricSamples({"a_total": {(): 3.0}, "b_total": {(): 9.0}, "c_total": {(): 2.0}})

    grown = compute_counter_increase(before, after)

    assert [grown.sum(f"{name}_total") for name in "abc"] == [3, 4, 2]


def test_a_quantile_is_interpolated_within_its_bucket() -> None:
    samples = _histogram(b100=50, b200=100, inf=100)

    assert compute_quantile_s(samples, "first", 0.5) == pytest.approx(0.1)
    assert compute_quantile_s(samples, "first", 0.75) == pytest.approx(0.15)
    assert compute_quantile_s(samples, "first", 0.99) == pytest.approx(0.198)


def test_a_quantile_beyond_the_last_bound_is_that_bound() -> None:
    assert compute_quantile_s(_histogram(b100=50, inf=100), "first", 0.99) == pytest.approx(0.1)


def test_an_empty_histogram_has_no_quantile() -> None:
    assert compute_quantile_s(_histogram(b100=0, inf=0), "first", 0.99) is None
    assert compute_quantile_s(MetricSamples({}), "first", 0.99) is None
