"""Recent suggestions, for outcomes that are reported by a separate HTTP request.

Rules:
1. Only sizes are stored, never the suggested text.
2. An outcome counts only for a completion of the same user (or of the same service key).
   Completions of other users are treated as unknown, even within a tenant.
3. The number of suggestions is bounded per tenant, so that a busy tenant does not displace others.
   Suggestions that were evicted, or that another gateway served, are unknown.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from caret.contracts.usage import OutcomeEvent, OutcomeRecord, UsageRecord
from caret.foundation.clock import Clock
from caret.foundation.ids import RequestId, TenantId, new_request_id
from inference.completion.request import Principal
from inference.gateway.protocol.frames import InvalidFrame
from inference.gateway.protocol.outcome_reports import (
    MAX_NUMBER,
    OutcomeReport,
    SuggestionRecord,
    count_outcome,
)

MAX_REMEMBERED: Final = 2_048  # per tenant; about 400 bytes each


@dataclass(frozen=True, slots=True)
class _RecentSuggestion:
    owner: str  # see Principal.owner
    suggestion: SuggestionRecord
    num_chars_of_first_line: int


class RecentSuggestions:
    """The recent suggestions of all tenants. Used on one event loop only."""

    def __init__(self, *, clock: Clock, append_record: Callable[[UsageRecord], None]) -> None:
        """`append_record` appends a record to the journal."""
        self._clock = clock
        self._append_record = append_record
        self._suggestions_by_tenant: defaultdict[
            TenantId, OrderedDict[RequestId, _RecentSuggestion]
        ] = defaultdict(OrderedDict)

    def add(self, principal: Principal, request_id: RequestId, text: str) -> None:
        """Remember the size of the suggestion `text`."""
        suggestions = self._suggestions_by_tenant[principal.snapshot.tenant_id]
        if request_id in suggestions:
            return  # identical requests share one suggestion, which has one outcome
        suggestion = SuggestionRecord(request_id)
        suggestion.append_text(text)
        line = text.partition("\n")[0]
        suggestions[request_id] = _RecentSuggestion(principal.owner, suggestion, len(line))
        if len(suggestions) > MAX_REMEMBERED:
            suggestions.popitem(last=False)

    def report(
        self, principal: Principal, request_id: RequestId, event: OutcomeEvent, *, after_ms: int
    ) -> None:
        """Record the outcome. Outcomes of unknown completions and repeated ones are ignored."""
        recent = self._suggestions_by_tenant[principal.snapshot.tenant_id].get(request_id)
        if recent is None or recent.owner != principal.owner:
            return
        # Only Tabby's agent reports partial acceptance here: the user accepted the first line.
        is_first_line = event is OutcomeEvent.PARTIALLY_ACCEPTED
        after_ms = min(max(after_ms, 0), MAX_NUMBER)
        report = OutcomeReport(
            event,
            chars=recent.num_chars_of_first_line if is_first_line else None,
            lines=1 if is_first_line else None,
            after_ms=after_ms,
        )
        try:
            counts = count_outcome(recent.suggestion, report)
        except InvalidFrame:
            return
        self._append_record(
            OutcomeRecord(
                outcome_id=new_request_id(),
                request_id=request_id,
                tenant_id=principal.snapshot.tenant_id,
                user_id=principal.credential.user_id,
                occurred_at_ms=self._clock.now_ms(),
                event=event,
                chars=counts.chars,
                lines=counts.lines,
                after_ms=after_ms,
            )
        )
