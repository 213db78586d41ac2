"""Captured content of completions, sent from gateways to the worker for users who have consented.

    caret:content   stream  field `sealed`: a ContentBatch (caret.contracts.sealed_message)

Gateways send content only if the snapshot states that the tenant allows it and the user has
consented (`Credential.keeps_content`). The worker checks the consent receipts again before it
stores content. Gateways do not resend content that is lost before it reaches the worker.
"""

from typing import Final

import msgspec

from caret.contracts.policy import Mode
from caret.contracts.sealed_message import MessageSealer
from caret.contracts.usage import FinishReason, OutcomeEvent
from caret.foundation.ids import RequestId, UserId

CONTENT: Final = "caret:content"  # Redis key of the stream
MAX_AGE_S: Final = 120  # of an entry in the stream
# Each write deletes older entries, and the stream expires after this time without a write. So an
# entry lives at most twice this time, which is MAX_AGE_S.
TRIM_AGE_MS: Final = MAX_AGE_S * 1000 // 2
MAX_QUEUED: Final = 1_000  # batches in the stream; the oldest are dropped first
MAX_BATCH_CHARS: Final = 200_000  # a single longer item is a batch of its own

# Limits for one captured request. The text nearest to the cursor and the latest chat turns remain.
# Suggestion edits above the limit are not captured.
MAX_PREFIX_CHARS: Final = 16_000
MAX_SUFFIX_CHARS: Final = 8_000
MAX_CHAT_CHARS: Final = 24_000
MAX_SUGGESTION_EDIT_CHARS: Final = 16_000


class ChatTurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    role: str  # system | user | assistant
    text: str


class CapturedCompletion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="completion"):
    """A request and its suggestion, without secrets and excluded content."""

    request_id: RequestId
    user_id: UserId
    occurred_at_ms: int  # Unix milliseconds
    mode: Mode
    language: str  # as in CompletionRecord
    repository: str
    path: str
    prefix: str  # up to the cursor
    suffix: str  # from the cursor on
    chat: tuple[ChatTurn, ...]  # oldest first; empty unless the mode is chat
    completion: str  # text of the suggestion
    finish_reason: FinishReason


class CapturedSuggestionEdit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="edit"):
    """The text of a suggestion after the user edited it, as the client reports it."""

    request_id: RequestId  # of the completion
    user_id: UserId
    occurred_at_ms: int  # Unix milliseconds
    event: OutcomeEvent
    after_ms: int  # since the suggestion was shown; for PERSISTED: since it was accepted
    text: str  # after the edit


Item = CapturedCompletion | CapturedSuggestionEdit  # of a ContentBatch


class ContentBatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    items: tuple[Item, ...]  # of one tenant


class ContentSealer(MessageSealer):
    def __init__(self, root_secret: bytes) -> None:
        super().__init__(root_secret, purpose="content_capture")
