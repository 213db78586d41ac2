"""Outcomes of completions that were asked on another connection, perhaps of another gateway.

Rules:
1. A gateway cannot know whose a request was, and says nothing about it: every well-formed id gets
   the same silence. Ingest holds what is told against the completion's record.
2. A request id carries its moment: what is older than MAX_AGE_MS, or to come, is unknown.
3. Who asks for nothing could tell without end, so that each owner's are paced, and each tenant's:
   ingest, which looks for what each of them is of, is everybody's.
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

MAX_AGE_MS: Final = 24 * 3_600_000  # a night's sleep, and then half an hour
MAX_AHEAD_MS: Final = 60_000  # of another gateway's clock
# An editor follows 64 suggestions, each through five moments, and tells of them at once when it
# has slept.
MAX_AT_ONCE: Final = 512
_INTERVAL_S: Final = 1.0  # in which one more may be told
# Of a tenant on this gateway: that of a hundred of its people who wake up at once.
MAX_OF_TENANT_AT_ONCE: Final = 8_192
_TENANTS_INTERVAL_S: Final = 1 / 32
_MAX_HOLDERS: Final = 4_096  # about 200 bytes each
_TIMED_VERSION: Final = 7


class LateOutcomeRecorder:
    """One event loop uses it."""

    def __init__(self, *, clock: Clock, keep: Callable[[UsageRecord], None]) -> None:
        """`keep`: the journal's."""
        self._clock = clock
        self._keep = keep
        self._of_owners = _RateLimiters(clock, at_once=MAX_AT_ONCE, interval_s=_INTERVAL_S)
        self._of_tenants = _RateLimiters(
            clock, at_once=MAX_OF_TENANT_AT_ONCE, interval_s=_TENANTS_INTERVAL_S
        )

    def record(self, principal: Principal, request_id: str, told: OutcomeReport) -> None:
        """Raises InvalidFrame: `invalid_field`, `unknown_id`; and Busy."""
        span_s = validate_report(told)
        now_ms = self._clock.now_ms()
        known = _checked(request_id, now_ms)
        self._of_owners.spend(principal.owner)
        self._of_tenants.spend(principal.snapshot.tenant_id)
        self._keep(
            LateOutcomeRecord(
                outcome_id=new_request_id(),
                request_id=known,
                tenant_id=principal.snapshot.tenant_id,
                user_id=principal.credential.user_id,
                key_id=principal.credential.key_id,
                occurred_at_ms=now_ms,
                event=told.event,
                after_ms=told.after_ms,
                chars=told.chars,
                lines=told.lines,
                span_s=span_s,
                edited_ratio=told.edited_ratio,
            )
        )


class _RateLimiters:
    """By holder; who was not heard of for long begins anew."""

    def __init__(self, clock: Clock, *, at_once: int, interval_s: float) -> None:
        self._clock = clock
        self._at_once = at_once
        self._interval_s = interval_s
        self._of: OrderedDict[str, Gcra] = OrderedDict()

    def spend(self, holder: str) -> None:
        """Raises Busy."""
        now_s = self._clock.monotonic_s()
        pace = self._of.setdefault(holder, Gcra())
        self._of.move_to_end(holder)
        if len(self._of) > _MAX_HOLDERS:
            self._of.popitem(last=False)
        wait_s = pace.wait_s(1, capacity=self._at_once, interval_s=self._interval_s, now_s=now_s)
        if wait_s:
            raise TooManyRequests("too_many_requests", "Tell it less often.", retry_after_s=wait_s)
        pace.spend(1, interval_s=self._interval_s, now_s=now_s)


def _checked(text: str, now_ms: int) -> RequestId:
    """By its form alone."""
    try:
        request_id = uuid.UUID(text)
    except ValueError:
        request_id = None
    if request_id is None or str(request_id) != text or request_id.version != _TIMED_VERSION:
        raise InvalidFrame("invalid_field", "request_id must be as `meta` has told it.")
    age_ms = now_ms - (request_id.int >> 80)
    if not -MAX_AHEAD_MS <= age_ms <= MAX_AGE_MS:
        raise InvalidFrame("unknown_id", "What became of it is told within a day.")
    return RequestId(text)
