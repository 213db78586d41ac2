"""What of a completion may be kept: of a user who has agreed, and nothing that the policy excludes.

Pure. Texts are cut to what is nearest to the cursor; secrets are the courier's to find.
"""

from typing import Final

from caret.contracts.captured_content import (
    MAX_CHAT_CHARS,
    MAX_EDIT_CHARS,
    MAX_PREFIX_CHARS,
    MAX_SUFFIX_CHARS,
    CapturedCompletion,
    CapturedEdit,
    ChatTurn,
)
from caret.contracts.usage import FinishReason
from inference.completion.incoming_request import ChatMessage
from inference.completion.request import Principal
from inference.completion.request_trace import RequestTrace
from inference.completion.suggestion_edit import SuggestionEdit

# Of completions that were shown as they were sent.
_KEPT: Final = frozenset({FinishReason.STOP, FinishReason.LENGTH})


def capture_completion(account: RequestTrace) -> CapturedCompletion | None:
    """None: nothing of it may be kept, or nothing of it was shown."""
    admitted, texts = account.admitted, account.texts
    if admitted is None or not texts or account.finish_reason not in _KEPT:
        return None
    request, user_id = admitted.request, admitted.principal.credential.user_id
    if user_id is None or not admitted.principal.is_content_captured:
        return None
    return CapturedCompletion(
        request_id=account.arrival.request_id,
        user_id=user_id,
        occurred_at_ms=account.arrival.occurred_at_ms,
        completion=clean("".join(texts)),
        finish=account.finish_reason,
        mode=request.mode,
        language=request.language,
        repository=clean(request.repository),
        path=clean(request.path),
        prefix=clean(request.prefix[-MAX_PREFIX_CHARS:]),
        suffix=clean(request.suffix[:MAX_SUFFIX_CHARS]),
        chat=_chat(request.messages),
    )


def capture_edit(principal: Principal, told: SuggestionEdit, *, now_ms: int) -> CapturedEdit | None:
    """None: it may not be kept, or is too long."""
    user_id = principal.credential.user_id
    if user_id is None or not principal.is_content_captured or len(told.text) > MAX_EDIT_CHARS:
        return None
    return CapturedEdit(
        request_id=told.request_id,
        user_id=user_id,
        occurred_at_ms=now_ms,
        event=told.event,
        after_ms=told.after_ms,
        text=clean(told.text),
    )


def _chat(messages: tuple[ChatMessage, ...]) -> tuple[ChatTurn, ...]:
    """The last ones that find room, whole."""
    turns, room = list[ChatTurn](), MAX_CHAT_CHARS
    for message in reversed(messages):
        room -= len(message.text)
        if room < 0:
            break
        turns.append(ChatTurn(clean(message.role), clean(message.text)))
    return tuple(reversed(turns))


def clean(text: str) -> str:
    """Without lone surrogates, which JSON can bring and UTF-8 cannot."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
