"""The text of a suggestion after the user edited it, stored only with consent.

An edit that a model proposes is a ProposedEdit (inference.completion.edit).
"""

from dataclasses import dataclass

from caret.contracts.usage import OutcomeEvent
from caret.foundation.ids import RequestId


@dataclass(frozen=True, slots=True)
class SuggestionEdit:
    request_id: RequestId  # of the completion
    event: OutcomeEvent
    after_ms: int  # since the suggestion was shown; for PERSISTED: since it was accepted
    text: str  # after the edit
