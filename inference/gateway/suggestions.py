"""What was suggested lately, so that an outcome that comes by another request finds its completion.

Rules:
1. Numbers only: never what was suggested.
2. An outcome counts for a completion of the same tenant; of others it is as if it were unknown.
3. Bounded for each tenant, so that a busy one does not push out its neighbours'. What was
   forgotten, or suggested by another gateway, is unknown.
"""

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from caret.contracts.usage import OutcomeEvent, OutcomeRecord, UsageRecord
from caret.foundation.clock import Clock
from caret.foundation.ids import RequestId, TenantId, new_request_id
from inference.completion.request import Principal
from inference.gateway.connection import MAX_OUTCOME, MAX_REPORTS

MAX_REMEMBERED: Final = 2_048  # of a tenant; about 300 bytes each


@dataclass(slots=True)
class _Suggestion:
    num_chars: int
    num_chars_of_line: int  # its first
    reports: Counter[OutcomeEvent] = field(default_factory=Counter)


class Suggestions:
    """One event loop uses it."""

    def __init__(self, *, clock: Clock, keep: Callable[[UsageRecord], None]) -> None:
        """`keep`: the journal's."""
        self._clock = clock
        self._keep = keep
        self._of_tenant: defaultdict[TenantId, OrderedDict[RequestId, _Suggestion]] = defaultdict(
            OrderedDict
        )

    def remember(self, tenant_id: TenantId, request_id: RequestId, text: str) -> None:
        suggestions = self._of_tenant[tenant_id]
        line = text.partition("\n")[0]
        suggestions[request_id] = _Suggestion(len(text), len(line))
        if len(suggestions) > MAX_REMEMBERED:
            suggestions.popitem(last=False)

    def report(
        self, principal: Principal, request_id: RequestId, event: OutcomeEvent, *, after_ms: int
    ) -> None:
        """Records the outcome, unless the completion is unknown or it was told often enough."""
        tenant_id = principal.snapshot.tenant_id
        suggestion = self._of_tenant[tenant_id].get(request_id)
        if suggestion is None or suggestion.reports[event] >= MAX_REPORTS[event]:
            return
        suggestion.reports[event] += 1
        is_part = event is OutcomeEvent.PARTIALLY_ACCEPTED
        self._keep(
            OutcomeRecord(
                outcome_id=new_request_id(),
                request_id=request_id,
                tenant_id=tenant_id,
                user_id=principal.credential.user_id,
                occurred_at_ms=self._clock.now_ms(),
                event=event,
                chars=suggestion.num_chars_of_line if is_part else suggestion.num_chars,
                after_ms=min(max(after_ms, 0), MAX_OUTCOME),
            )
        )
