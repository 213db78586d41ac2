"""What a client says has become of a suggestion: its text, for users who let it be kept."""

from dataclasses import dataclass

from caret.contracts.usage import OutcomeEvent
from caret.foundation.ids import RequestId


@dataclass(frozen=True, slots=True)
class SuggestionEdit:
    request_id: RequestId  # of the completion
    event: OutcomeEvent
    after_ms: int  # since it was shown
    text: str
