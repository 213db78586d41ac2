"""Late outcomes: outcomes reported to a gateway or connection that did not serve the completion.

Rules:
1. The gateway cannot know which user made the request. So every ID that rule 2 accepts gets the
   same empty response, within the rate limits of rule 3. Ingestion compares the report with the
   completion's usage record.
2. A request ID contains the time of the request. An ID that is older than MAX_AGE_MS, or more than
   MAX_AHEAD_MS in the future, is rejected as unknown.
3. Late outcomes are rate-limited per tenant, and per user or service key. A client could report
   them without ever requesting a completion. And all tenants share the ingestion, which looks up
   each completion.
"""

import uuid
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from caret.contracts.usage import LateOutcomeRecord, UsageRecord
from caret.foundation.clock import Clock
from caret.foundation.ids import RequestId, new_request_id
from inference.completion.request import Principal
from inference.errors import TooManyRequests
from inference.gateway.protocol.frames import InvalidFrame
from inference.gateway.protocol.outcome_reports import OutcomeReport, validate_report
from inference.gateway.rate_limits.gcra import Gcra

MAX_AGE_MS: Final = 24 * 3_600_000  # a laptop may sleep over night before the last report
MAX_AHEAD_MS: Final = 60_000  # clock skew between gateways
# An editor tracks 64 suggestions with up to five reports each. After sleep it sends all at once.
MAX_AT_ONCE: Final = 512
_INTERVAL_S: Final = 1.0  # seconds until one more report is allowed
# For each tenant on this gateway: a hundred laptops that wake up at once, with 80 reports each.
MAX_OF_TENANT_AT_ONCE: Final = 8_192
_TENANTS_INTERVAL_S: Final = 1 / 32  # seconds until one more report of the tenant is allowed
_MAX_HOLDERS: Final = 4_096  # limiters of each kind, of about 200 bytes each
_UUID_VERSION: Final = 7  # of UUIDs that contain their time


class LateOutcomeRecorder:
    """Records late outcomes in the journal. Used on one event loop only."""

    def __init__(self, *, clock: Clock, append_record: Callable[[UsageRecord], None]) -> None:
        """`append_record` appends a record to the journal."""
        self._clock = clock
        self._append_record = append_record
        self._owner_limiters = _RateLimiters(clock, max_at_once=MAX_AT_ONCE, interval_s=_INTERVAL_S)
        self._tenant_limiters = _RateLimiters(
            clock, max_at_once=MAX_OF_TENANT_AT_ONCE, interval_s=_TENANTS_INTERVAL_S
        )

    def record(self, principal: Principal, request_id: str, report: OutcomeReport) -> None:
        """Record a late outcome.

        The codes of InvalidFrame are `invalid_field` and `unknown_id`. Raises InvalidFrame,
        TooManyRequests.
        """
        span_s = validate_report(report)
        now_ms = self._clock.now_ms()
        valid_request_id = _check_request_id(request_id, now_ms)
        # Both limits are checked first, so that a rejected report uses up neither.
        self._owner_limiters.require_capacity(principal.owner)
        self._tenant_limiters.require_capacity(principal.snapshot.tenant_id)
        self._owner_limiters.spend(principal.owner)
        self._tenant_limiters.spend(principal.snapshot.tenant_id)
        self._append_record(
            LateOutcomeRecord(
                outcome_id=new_request_id(),
                request_id=valid_request_id,
                tenant_id=principal.snapshot.tenant_id,
                user_id=principal.credential.user_id,
                key_id=principal.credential.key_id,
                occurred_at_ms=now_ms,
                event=report.event,
                after_ms=report.after_ms,
                chars=report.chars,
                lines=report.lines,
                span_s=span_s,
                edited_ratio=report.edited_ratio,
                display_ms=report.display_ms,
            )
        )


class _RateLimiters:
    """A rate limiter for each holder: a tenant, a user or a service key.

    Only the limiters of the _MAX_HOLDERS most recently active holders are kept.
    """

    def __init__(self, clock: Clock, *, max_at_once: int, interval_s: float) -> None:
        self._clock = clock
        self._max_at_once = max_at_once
        self._interval_s = interval_s
        self._limiters: OrderedDict[str, Gcra] = OrderedDict()

    def require_capacity(self, holder: str) -> None:
        """Check that the holder's limit has a unit left. Raises TooManyRequests."""
        wait_s = self._find_limiter(holder).wait_s(
            1,
            capacity=self._max_at_once,
            interval_s=self._interval_s,
            now_s=self._clock.monotonic_s(),
        )
        if wait_s:
            raise TooManyRequests(
                "too_many_requests", "Send late outcomes less often.", retry_after_s=wait_s
            )

    def spend(self, holder: str) -> None:
        """Spend one unit of the holder's limit, after `require_capacity`."""
        now_s = self._clock.monotonic_s()
        self._find_limiter(holder).spend(1, interval_s=self._interval_s, now_s=now_s)

    def _find_limiter(self, holder: str) -> Gcra:
        """Return the holder's limiter, and count the holder as active."""
        rate_limiter = self._limiters.setdefault(holder, Gcra())
        self._limiters.move_to_end(holder)
        if len(self._limiters) > _MAX_HOLDERS:
            self._limiters.popitem(last=False)
        return rate_limiter


def _check_request_id(text: str, now_ms: int) -> RequestId:
    """Check the form of the ID and its time. Raises InvalidFrame."""
    try:
        request_id = uuid.UUID(text)
    except ValueError:
        request_id = None
    if request_id is None or str(request_id) != text or request_id.version != _UUID_VERSION:
        raise InvalidFrame(
            "invalid_field", "request_id must be the request ID in the `meta` of a completion."
        )
    age_ms = now_ms - (request_id.int >> 80)  # the first 48 of 128 bits are the time
    if not -MAX_AHEAD_MS <= age_ms <= MAX_AGE_MS:
        raise InvalidFrame("unknown_id", "request_id must be of a request from the last 24 hours.")
    return RequestId(text)
