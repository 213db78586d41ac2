"""Prometheus metrics of completions: latencies, counts and tokens."""

from collections.abc import Iterable

import pytest
from prometheus_client.core import Metric

from caret.contracts.policy import Mode, Trigger
from caret.contracts.usage import FinishReason, OutcomeEvent, OutcomeRecord
from caret.foundation.ids import RequestId, TenantId
from inference.completion.request_trace import RequestTrace
from inference.errors import EngineError
from inference.recording.metrics.completion_metrics import CompletionMetrics, CountingJournal
from tests.fakes.journal import FakeJournal
from tests.fakes.request_traces import make_ended_trace
from tests.fakes.requests import make_request, make_trace
from tests.fakes.tenants import ACME, GLOBEX, make_principal


def sample_value(families: Iterable[Metric], name: str, **labels: str) -> float | None:
    """Return the value of the first sample with these labels, or None if there is none."""
    for family in families:
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                return sample.value
    return None


def metric_value(metrics: CompletionMetrics, name: str, **labels: str) -> float | None:
    return sample_value(metrics.collect(), name, **labels)


def test_a_first_token_latency_is_counted_in_the_buckets_above_it() -> None:
    metrics = CompletionMetrics()

    # 56 ms to the first token, with 1 ms in each of the six other stages.
    metrics.on_completed(make_ended_trace(took_s={"generate": 0.05}))

    buckets = {
        bound: metric_value(metrics, "caret_first_token_seconds_bucket", mode="inline", le=bound)
        for bound in ("0.04", "0.06", "+Inf")
    }
    assert buckets == {"0.04": 0, "0.06": 1, "+Inf": 1}
    assert metric_value(metrics, "caret_first_token_seconds_sum", pool="fast") == pytest.approx(
        0.056
    )


def test_a_latency_equal_to_the_bound_of_a_bucket_is_counted_in_it() -> None:
    metrics = CompletionMetrics()
    trace = make_ended_trace()
    trace.first_sent_s = trace.arrival.received_s + 0.5

    metrics.on_completed(trace)

    assert metric_value(metrics, "caret_first_token_seconds_bucket", le="0.5") == 1
    assert metric_value(metrics, "caret_first_token_seconds_bucket", le="0.25") == 0


def test_cancellation_is_measured_until_the_engine_stream_is_closed() -> None:
    metrics, trace = CompletionMetrics(), make_ended_trace()
    trace.cancelled_s, trace.engine_closed_s = 10.0, 10.004

    metrics.on_completed(trace)
    metrics.on_completed(make_ended_trace())

    assert metric_value(metrics, "caret_cancellation_seconds_count") == 1
    assert metric_value(metrics, "caret_cancellation_seconds_bucket", le="0.002") == 0
    assert metric_value(metrics, "caret_cancellation_seconds_bucket", le="0.005") == 1


def test_a_completion_without_text_has_no_first_token_latency() -> None:
    metrics = CompletionMetrics()

    metrics.on_completed(make_ended_trace(until="generate"))  # ended in the stage generate

    assert metric_value(metrics, "caret_first_token_seconds_count") is None
    assert metric_value(metrics, "caret_stage_seconds_count", stage="route") == 1
    assert metric_value(metrics, "caret_stage_seconds_count", stage="generate") is None


def test_each_completion_is_counted_by_mode_trigger_and_finish_reason() -> None:
    metrics = CompletionMetrics()
    failed_trace = make_ended_trace(
        finish_reason=FinishReason.ERROR, error_code="engine_disconnected"
    )
    failed_trace.request = make_request(mode=Mode.BLOCK, trigger=Trigger.MANUAL)

    metrics.on_completed(make_ended_trace(finish_reason=FinishReason.CANCELLED))
    metrics.on_completed(failed_trace)

    name = "caret_completions_total"
    assert (
        metric_value(metrics, name, mode="inline", trigger="automatic", finish_reason="cancelled")
        == 1
    )
    assert (
        metric_value(metrics, name, mode="block", trigger="manual", error="engine_disconnected")
        == 1
    )


def test_an_invalid_request_is_counted_with_an_unknown_mode() -> None:
    metrics = CompletionMetrics()
    trace = make_trace()
    trace.fail(EngineError("bad_mode", ""))

    metrics.on_completed(trace)

    assert metric_value(metrics, "caret_completions_total", mode="unknown", error="bad_mode") == 1


def test_tokens_of_prompts_with_cache_information_are_also_counted_separately() -> None:
    """Not every engine reports cached tokens. The cache hit rate is their share in such prompts."""
    metrics = CompletionMetrics()

    metrics.on_completed(make_ended_trace(prompt_tokens=100, cached_tokens=90, generated_tokens=7))
    metrics.on_completed(make_ended_trace(prompt_tokens=50, cached_tokens=None))

    assert metric_value(metrics, "caret_assembled_prompts_total") == 2
    assert metric_value(metrics, "caret_prompt_tokens_total") == 150
    assert metric_value(metrics, "caret_prompt_tokens_with_cache_info_total") == 100
    assert metric_value(metrics, "caret_cached_tokens_total", pool="fast") == 90
    assert metric_value(metrics, "caret_generated_tokens_total") == 7


def test_a_warm_up_is_not_counted_as_a_completion_of_its_mode() -> None:
    metrics = CompletionMetrics()
    trace = make_ended_trace(prompt_tokens=100, cached_tokens=0)
    trace.request = make_request(is_warm_up=True)

    metrics.on_completed(trace)

    assert metric_value(metrics, "caret_prompt_tokens_total", mode="warm_up") == 100
    assert metric_value(metrics, "caret_completions_total", mode="inline") is None


def test_filter_reasons_are_counted() -> None:
    metrics = CompletionMetrics()

    metrics.on_completed(make_ended_trace(filter_reason="repetition"))

    assert metric_value(metrics, "caret_filtered_completions_total", reason="repetition") == 1


def test_outcomes_are_counted_when_they_are_appended_to_the_journal() -> None:
    metrics, journal = CompletionMetrics(), FakeJournal()
    record = OutcomeRecord(
        outcome_id=RequestId("1"),
        request_id=RequestId("2"),
        tenant_id=TenantId("3"),
        user_id=None,
        occurred_at_ms=0,
        event=OutcomeEvent.SHOWN,
        chars=3,
        after_ms=5,
        display_ms=130,
    )

    CountingJournal(journal, metrics).append(record)

    assert metric_value(metrics, "caret_outcomes_total", event="shown") == 1
    assert metric_value(metrics, "caret_display_seconds_sum") == pytest.approx(0.13)
    assert journal.outcomes == [record]


def test_tenants_have_no_label_by_default() -> None:
    metrics = CompletionMetrics()

    metrics.on_completed(make_ended_trace())

    samples = [sample for family in metrics.collect() for sample in family.samples]
    assert samples
    assert not any("tenant" in sample.labels for sample in samples)


def test_a_tenant_keeps_its_label_when_another_becomes_busier() -> None:
    """A scrape gives free labels to the busiest tenants. If labels moved, counters would decrease.

    For the same reason, earlier completions of a tenant stay under `other`.
    """
    metrics = CompletionMetrics(num_tenants=1)
    for slug, count in (("acme", 3), ("globex", 5)):
        for _ in range(count):
            metrics.on_completed(_trace_of_tenant(slug))
    name = "caret_tenant_completions_total"
    # The first scrape gives the only label to globex, the busiest. Its label counts from now on.
    assert metric_value(metrics, name, tenant="other") == 3 + 5

    for _ in range(9):  # acme is busier now, but no label is free
        metrics.on_completed(_trace_of_tenant("acme"))
    metrics.on_completed(_trace_of_tenant("globex"))

    assert metric_value(metrics, name, tenant="globex") == 1
    assert metric_value(metrics, name, tenant="acme") is None
    assert metric_value(metrics, name, tenant="other") == 3 + 5 + 9


def test_no_text_of_a_request_becomes_a_label() -> None:
    metrics = CompletionMetrics(num_tenants=5)
    trace = make_ended_trace()
    trace.request = make_request(
        prefix="hunter2", suffix="hunter2", path="hunter2", repository="hunter2", language="hunter2"
    )

    metrics.on_completed(trace)

    assert "hunter2" not in repr([list(family.samples) for family in metrics.collect()])


def _trace_of_tenant(slug: str) -> RequestTrace:
    trace = make_ended_trace()
    trace.principal = make_principal(tenant_id=ACME if slug == "acme" else GLOBEX)
    return trace
