"""The display latency that editors report, compared with the gateway's first token.

Both are in the usage records that gateways deliver: an outcome `shown` has the time from sending
the request to text on the screen, and its completion has the time to the first token.
"""

from collections.abc import Sequence
from typing import Final, cast

import redis

from caret.contracts.usage import (
    USAGE_FIELD,
    USAGE_STREAM,
    CompletionRecord,
    OutcomeRecord,
    UsageRecord,
    decode_records,
)
from tests.benchmarks.installation import Home
from tests.benchmarks.results import Report, spread

PROMISED_MS: Final = 100.0  # for an inline suggestion that the developer waits for


def read_delivered_records(home: Home) -> list[UsageRecord]:
    """Return all delivered usage records, in their order."""
    with redis.Redis.from_url(home.paths.redis_url.read_text().strip()) as connection:
        entries = cast(list[tuple[bytes, dict[bytes, bytes]]], connection.xrange(USAGE_STREAM))
    return [
        record for _, fields in entries for record in decode_records(fields[USAGE_FIELD.encode()])
    ]


def report_display_latency(report: Report, name: str, records: Sequence[UsageRecord]) -> None:
    """Report the display latencies, and the first tokens of the same completions."""
    displays_ms = {
        record.request_id: record.display_ms
        for record in records
        if isinstance(record, OutcomeRecord) and record.display_ms is not None
    }
    pairs = [
        (displays_ms[record.request_id], record.first_token_ms)
        for record in records
        if isinstance(record, CompletionRecord)
        and record.first_token_ms is not None
        and record.request_id in displays_ms
    ]
    if not pairs:
        return
    firsts_ms = spread([first_ms for _, first_ms in pairs])
    later_ms = spread([display_ms - first_ms for display_ms, first_ms in pairs])
    ratios = spread([display_ms / first_ms for display_ms, first_ms in pairs])
    displays = spread([display_ms for display_ms, _ in pairs])
    report.figure(f"{name}.display", displays["p50"], "ms", **displays)
    report.figure(f"{name}.first_token", firsts_ms["p50"], "ms", **firsts_ms)
    report.figure(f"{name}.display_after_first_token", later_ms["p50"], "ms", **later_ms)
    report.figure(f"{name}.display_to_first_token", ratios["p50"], "times", **ratios)
    share = sum(display_ms <= PROMISED_MS for display_ms, _ in pairs) / len(pairs)
    report.figure(f"{name}.displayed_in_time", 100 * share, "%")
