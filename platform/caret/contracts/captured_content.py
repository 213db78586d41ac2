"""Content of completions on its way to be kept, for users who have agreed to it.

    caret:content   stream  field `sealed`: a Batch (caret.contracts.sealed_message)

Gateways send it only where the snapshot says that the tenant allows and the user agrees
(`Credential.keeps_content`); the worker asks the receipts again before it keeps anything. What is
lost on the way is lost: nobody waits for it.
"""

from typing import Final

import msgspec

from caret.contracts.policy import Mode
from caret.contracts.sealed_message import MessageSealer
from caret.contracts.usage import FinishReason, OutcomeEvent
from caret.foundation.ids import RequestId, UserId

CONTENT: Final = "caret:content"
MAX_AGE_S: Final = 120
STREAM_MS: Final = MAX_AGE_S * 1000 // 2  # an entry is gone after twice of it at the latest
MAX_QUEUED: Final = 1_000  # batches; the oldest go first
MAX_BATCH_CHARS: Final = 200_000  # in a batch, unless its only item has more

# What is kept of a request; of the rest is kept what is nearest to the cursor, or last said.
MAX_PREFIX_CHARS: Final = 16_000
MAX_SUFFIX_CHARS: Final = 8_000
MAX_CHAT_CHARS: Final = 24_000
MAX_EDIT_CHARS: Final = 16_000


class ChatTurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    role: str
    text: str


class CapturedCompletion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="completion"):
    """A request and what was suggested. Secrets and what the policy excludes are left out."""

    request_id: RequestId
    user_id: UserId
    occurred_at_ms: int
    mode: Mode
    language: str  # "" when the client did not say
    repository: str
    path: str
    prefix: str  # up to the cursor
    suffix: str  # from the cursor on
    chat: tuple[ChatTurn, ...]  # oldest first; empty unless it is one
    completion: str
    finish: FinishReason


class CapturedEdit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="edit"):
    """What a suggestion has become in the editor, as the client says."""

    request_id: RequestId  # of the completion
    user_id: UserId
    occurred_at_ms: int
    event: OutcomeEvent
    after_ms: int  # since it was shown
    text: str


Item = CapturedCompletion | CapturedEdit


class ContentBatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    items: tuple[Item, ...]  # of one tenant


class ContentSealer(MessageSealer):
    def __init__(self, root_secret: bytes) -> None:
        super().__init__(root_secret, purpose="telemetry")
