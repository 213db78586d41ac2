"""Captured content of completions, sent from gateways to the worker for users who have consented.

    caret:content   stream  field `sealed`: a ContentBatch (caret.contracts.sealed_message)

Gateways send content only if the snapshot says that the tenant allows it and the user has consented
(`Credential.keeps_content`). The worker checks the consent receipts again before it stores
anything. Gateways do not resend content that is lost before it reaches the worker.
"""

from typing import Final

import msgspec

from caret.contracts.policy import Mode
from caret.contracts.sealed_message import MessageSealer
from caret.contracts.usage import FinishReason, OutcomeEvent
from caret.foundation.ids import RequestId, UserId

CONTENT: Final = "caret:content"
MAX_AGE_S: Final = 120
STREAM_MS: Final = MAX_AGE_S * 1000 // 2  # an entry is deleted after at most twice this time
MAX_QUEUED: Final = 1_000  # batches; the oldest are dropped first
MAX_BATCH_CHARS: Final = 200_000  # in a batch, unless its only item is longer

# Limits for one captured request: the text nearest to the cursor and the latest chat turns remain.
MAX_PREFIX_CHARS: Final = 16_000
MAX_SUFFIX_CHARS: Final = 8_000
MAX_CHAT_CHARS: Final = 24_000
MAX_EDIT_CHARS: Final = 16_000


class ChatTurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    role: str
    text: str


class CapturedCompletion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="completion"):
    """A request and its suggestion, without secrets and excluded content."""

    request_id: RequestId
    user_id: UserId
    occurred_at_ms: int
    mode: Mode
    language: str  # "" if the client did not send it
    repository: str
    path: str
    prefix: str  # up to the cursor
    suffix: str  # from the cursor on
    chat: tuple[ChatTurn, ...]  # oldest first; empty unless the mode is chat
    completion: str
    finish_reason: FinishReason


class CapturedEdit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="edit"):
    """The text that a suggestion has become in the editor, as the client reports it."""

    request_id: RequestId  # of the completion
    user_id: UserId
    occurred_at_ms: int
    event: OutcomeEvent
    after_ms: int  # since the suggestion was shown
    text: str


Item = CapturedCompletion | CapturedEdit


class ContentBatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    items: tuple[Item, ...]  # of one tenant


class ContentSealer(MessageSealer):
    def __init__(self, root_secret: bytes) -> None:
        super().__init__(root_secret, purpose="content_capture")
