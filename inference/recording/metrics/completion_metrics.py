"""Metrics of completions since this process started: counts and times.

Labels have few values: modes, pools, stages, finish reasons, error codes. Clients cannot add
values. Tenants have labels only if the operator wants this, and only up to a limit.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from prometheus_client.core import Metric

from caret.contracts.usage import FinishReason, OutcomeRecord, UsageRecord
from inference.completion.request import CompletionRequest
from inference.completion.request_trace import RequestTrace
from inference.recording.metrics.fast_counters import FastCounters, FastHistograms
from inference.recording.record import Journal
from inference.recording.stage_timings import compute_stage_timings

# Buckets near the targets: 80 ms (shedding), 100 ms (inline), 150 ms (FIM), 500 ms (block), 2 s
# (chat).
_FIRST_TOKEN_S: Final = (
    *(0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.25, 0.5, 1, 2, 5),
)
# Buckets near the budgets of the stages: 0.5, 1, 2, 5 and 60 ms.
_STAGE_S: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.06, 0.1, 0.25, 1, 5),
)
# A display latency covers the network in both directions, the first token and the rest of its line.
_DISPLAY_S: Final = (0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2, 5)
# Buckets near the target of 10 ms.
_CANCEL_S: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1)
UNKNOWN: Final = "unknown"  # mode and trigger of a request that was not valid
WARM_UP: Final = "warm_up"  # mode of all warm-ups
OTHERS: Final = "other"  # tenant label of all tenants without a label of their own


class CompletionMetrics:
    """A CompletionObserver. `metrics_server` reads the metrics with `collect`."""

    def __init__(self, *, num_tenants: int = 0) -> None:
        """`num_tenants` tenants get their own label; the others share one. 0: no tenant labels."""
        self._completions = FastCounters(
            "caret_completions",
            "Completions that have ended, including rejected ones.",
            ["mode", "trigger", "finish_reason", "error"],
        )
        self._first_token = FastHistograms(
            "caret_first_token_seconds",
            "From the end of the request body to the first text sent.",
            ["mode", "pool"],
            bounds=_FIRST_TOKEN_S,
        )
        self._stages = FastHistograms(
            "caret_stage_seconds",
            "Duration of a stage, for completions that have passed it.",
            ["stage"],
            bounds=_STAGE_S,
        )
        self._cancels = FastHistograms(
            "caret_cancellation_seconds",
            "From a cancel or newer request on a WebSocket until the engine's stream is closed.",
            bounds=_CANCEL_S,
        )
        self._tokens = {
            name: FastCounters(f"caret_{name}", documentation, ["mode", "pool"])
            for name, documentation in _TOKEN_COUNTERS.items()
        }
        self._outcomes = FastCounters(
            "caret_outcomes",
            "Outcomes of suggestions, as editors report them, without late outcomes.",
            ["event"],
        )
        self._displays = FastHistograms(
            "caret_display_seconds",
            "From sending a request to text on the screen, as editors report it.",
            bounds=_DISPLAY_S,
        )
        self._filtered = FastCounters(
            "caret_filtered_completions",
            "Completions that the filter truncated or withheld.",
            ["reason"],
        )
        self._tenants = _TenantLabels(num_tenants) if num_tenants else None

    def on_completed(self, trace: RequestTrace) -> None:
        request, finish_reason = trace.request, trace.finish_reason or FinishReason.CANCELLED
        mode = _read_mode(request)
        trigger = request.trigger if request else UNKNOWN
        self._completions.add(1, mode, trigger, finish_reason, trace.error_code)
        if trace.filter_reason:
            self._filtered.add(1, trace.filter_reason)
        if trace.first_sent_s is not None:
            # The time of the upload does not count: slow connections must not alert operators.
            arrival = trace.arrival
            began_s = arrival.received_s if arrival.body_read_s is None else arrival.body_read_s
            self._first_token.observe(trace.first_sent_s - began_s, mode, trace.pool)
        for timing in compute_stage_timings(trace, recorded_s=trace.clock.monotonic_s()):
            if timing.is_whole:
                self._stages.observe(timing.ended_s - timing.began_s, timing.stage)
        if trace.cancelled_s is not None and trace.engine_closed_s is not None:
            # If the completion had already ended, the engine was closed before the cancel.
            self._cancels.observe(max(0.0, trace.engine_closed_s - trace.cancelled_s))
        if trace.engine_called_s is not None:
            self._count_tokens(trace, mode)
        if self._tenants is not None and trace.principal is not None:
            self._tenants.count_completion(trace.principal.snapshot.slug, trace)

    def on_outcome(self, outcome: OutcomeRecord) -> None:
        self._outcomes.add(1, outcome.event)
        if outcome.display_ms is not None:
            self._displays.observe(outcome.display_ms / 1000)

    def collect(self) -> Iterator[Metric]:
        yield self._completions.to_family()
        yield self._first_token.to_family()
        yield self._stages.to_family()
        yield self._cancels.to_family()
        for counters in self._tokens.values():
            yield counters.to_family()
        yield self._outcomes.to_family()
        yield self._displays.to_family()
        yield self._filtered.to_family()
        if self._tenants is not None:
            yield from self._tenants.collect()

    def _count_tokens(self, trace: RequestTrace, mode: str) -> None:
        tokens, pool = self._tokens, trace.pool
        tokens["assembled_prompts"].add(1, mode, pool)
        tokens["prompt_tokens"].add(trace.prompt_tokens, mode, pool)
        tokens["generated_tokens"].add(trace.generated_tokens, mode, pool)
        if trace.cached_tokens is not None:
            tokens["prompt_tokens_with_cache_info"].add(trace.prompt_tokens, mode, pool)
            tokens["cached_tokens"].add(trace.cached_tokens, mode, pool)


_TOKEN_COUNTERS: Final = {
    "assembled_prompts": "Prompts sent to an engine.",
    "prompt_tokens": "Tokens of the prompts sent to an engine.",
    "prompt_tokens_with_cache_info": "Tokens of prompts whose engine reported cached tokens.",
    "cached_tokens": "Prompt tokens that the engine found in its prefix cache.",
    "generated_tokens": "Tokens that engines generated.",
}


class CountingJournal:
    """The journal; also counts the outcomes that are written to it, except late outcomes."""

    def __init__(self, journal: Journal, metrics: CompletionMetrics) -> None:
        self._journal = journal
        self._metrics = metrics

    def append(self, record: UsageRecord) -> None:
        if isinstance(record, OutcomeRecord):
            self._metrics.on_outcome(record)
        self._journal.append(record)


class _TenantLabels:
    """The metrics with a label for the tenant.

    Each time the metrics are read, the busiest tenants without a label get the free labels. A
    tenant keeps its label, so that no series ever decreases.
    """

    def __init__(self, num_labels: int) -> None:
        self._num_labels = num_labels
        self._labelled: set[str] = set()
        self._unlabelled: Counter[str] = Counter()
        self._completions = FastCounters(
            "caret_tenant_completions", "Completions of a tenant.", ["tenant", "finish_reason"]
        )
        self._tokens = FastCounters(
            "caret_tenant_tokens", "Tokens of a tenant, prompts and completions.", ["tenant"]
        )

    def count_completion(self, slug: str, trace: RequestTrace) -> None:
        label = slug
        if slug not in self._labelled:
            self._unlabelled[slug] += 1
            label = OTHERS
        self._completions.add(1, label, trace.finish_reason or FinishReason.CANCELLED)
        self._tokens.add(trace.prompt_tokens + trace.generated_tokens, label)

    def collect(self) -> Iterator[Metric]:
        num_free_labels = self._num_labels - len(self._labelled)
        for slug, _ in self._unlabelled.most_common(num_free_labels):
            self._labelled.add(slug)
            del self._unlabelled[slug]
        yield self._completions.to_family()
        yield self._tokens.to_family()


def _read_mode(request: CompletionRequest | None) -> str:
    if request is None:
        return UNKNOWN
    return WARM_UP if request.is_warm_up else request.mode
