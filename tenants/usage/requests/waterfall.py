"""A latency explanation as text of 80 columns: a bar for each stage, and the findings."""

from collections.abc import Iterator
from textwrap import wrap
from typing import Final

from caret.contracts.usage import CompletionRecord
from caret.foundation.clock import from_unix_ms
from tenants.usage.requests.latency_explanation import LatencyExplanation, LatencyStage

WIDTH: Final = 80
_BAR_WIDTH: Final = 36
_EIGHTHS: Final[tuple[str, ...]] = ("", *"▏▎▍▌▋▊▉")  # blocks of 0 to 7 eighths of a column


def format_waterfall(
    record: CompletionRecord, explanation: LatencyExplanation, *, slug: str
) -> Iterator[str]:
    """Yield the lines. `slug` is the tenant's."""
    yield f"Request {record.request_id}"
    yield from wrap(f"  {_describe_request(record, slug)}", WIDTH, subsequent_indent="  ")
    yield from wrap(f"  {_format_numbers(record)}", WIDTH, subsequent_indent="  ")
    yield ""
    for stage in explanation.stages:
        yield _format_stage(stage, record.total_ms)
    yield f"  {'record':<13}{'':>10}   after the end; only a trace has its duration"
    yield ""
    yield f"  {_format_first_token(record, explanation)}"
    for finding in explanation.findings:
        yield from wrap(f"  - {finding}", WIDTH, subsequent_indent="    ")


def _describe_request(record: CompletionRecord, slug: str) -> str:
    at = from_unix_ms(record.occurred_at_ms)
    return (
        f"{slug}, {record.mode}, {record.trigger}, by {record.protocol},"
        f" {at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03} UTC, ended: {record.finish_reason}"
    )


def _format_numbers(record: CompletionRecord) -> str:
    cached = "not reported" if record.cached_tokens is None else f"{record.cached_tokens:,}"
    location = (
        f"pool {record.pool}, replica {record.replica}" if record.replica else "at no replica"
    )
    load_note = (
        ""
        if record.num_in_flight_at_replica is None
        else f", {record.num_in_flight_at_replica} requests there"
    )
    variant = f", variant {record.variant}" if record.variant else ""
    return (
        f"{location}{load_note}{variant}; prompt {record.prompt_tokens:,} tokens, cached {cached},"
        f" generated {record.generated_tokens:,}"
    )


def _format_stage(stage: LatencyStage, total_ms: float) -> str:
    name = "receive+auth." if stage.name == "authenticate" else stage.name
    budget = "" if stage.budget_ms is None else f"of {stage.budget_ms:g}"
    sign = "!" if stage.is_over else " "
    bar = _draw_bar(stage.start_ms, stage.duration_ms, total_ms)
    return f"  {name:<13}{stage.duration_ms:>7,.1f} ms {sign} {budget:<7} {bar}".rstrip()


def _draw_bar(start_ms: float, duration_ms: float, total_ms: float) -> str:
    """Return a bar from a stage's start to its end, at least an eighth of a column wide."""
    if total_ms <= 0:
        return ""
    begin = min(_BAR_WIDTH - 1, int(start_ms / total_ms * _BAR_WIDTH))
    eighths = max(1, round(duration_ms / total_ms * _BAR_WIDTH * 8))
    eighths = min(eighths, (_BAR_WIDTH - begin) * 8)
    return " " * begin + "█" * (eighths // 8) + _EIGHTHS[eighths % 8]


def _format_first_token(record: CompletionRecord, explanation: LatencyExplanation) -> str:
    target = f"target {explanation.target_ms:g} ms"
    if record.first_token_ms is None:
        return f"No text was sent in {record.total_ms:,.1f} ms ({target})."
    slow = "slow" if explanation.is_slow else "in time"
    return f"First text after {record.first_token_ms:,.1f} ms: {slow} ({target})."
