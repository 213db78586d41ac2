"""The slowest completions of the last hour over all gateways, explained by stage.

The answers of gateways contain IDs of requests and tenants, counts and times, but no users, keys or
content.
"""

from dataclasses import dataclass
from typing import Final

import msgspec

from caret.contracts.latency_targets import FIRST_TOKEN_TARGETS_MS
from caret.contracts.usage import CompletionRecord, decode_records
from caret.foundation.egress.http_client import RequestFailed
from tenants.fleet.pools.scraping.gateway_scraper import fetch_from_gateway, query_all_gateways
from tenants.usage.requests.latency_explanation import LatencyExplanation, explain_latency

MAX_SHOWN: Final = 50  # completions on the page


@dataclass(frozen=True, slots=True)
class SlowRequest:
    record: CompletionRecord
    explanation: LatencyExplanation
    waited_ms: float  # until the first token, or until the request ended without one

    @property
    def target_multiple(self) -> float:
        """The wait divided by the latency target of the mode."""
        return self.waited_ms / self.explanation.target_ms


@dataclass(frozen=True, slots=True)
class SlowRequests:
    requests: list[SlowRequest]  # sorted by `target_multiple`, highest first
    num_unreachable: int  # gateways without a readable answer


def list_slow_requests() -> SlowRequests:
    """Ask all gateways for their slowest completions, and return the slowest of them."""
    responses = query_all_gateways(_fetch_slow_requests)
    records = [record for response in responses if response is not None for record in response]
    records.sort(key=lambda record: -_get_waited_ms(record) / FIRST_TOKEN_TARGETS_MS[record.mode])
    return SlowRequests(
        requests=[
            SlowRequest(record, explain_latency(record), _get_waited_ms(record))
            for record in records[:MAX_SHOWN]
        ],
        num_unreachable=sum(response is None for response in responses),
    )


def _fetch_slow_requests(gateway_url: str) -> list[CompletionRecord] | None:
    """Return a gateway's slowest completions; None: no readable answer."""
    try:
        data = fetch_from_gateway(gateway_url, "/slow")
        return [record for record in decode_records(data) if isinstance(record, CompletionRecord)]
    except (RequestFailed, msgspec.DecodeError, UnicodeDecodeError):  # down, or another version
        return None


def _get_waited_ms(record: CompletionRecord) -> float:
    return record.total_ms if record.first_token_ms is None else record.first_token_ms
