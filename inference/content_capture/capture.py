"""Selects the content that may be stored: with the user's consent, and within the policy.

Pure. Prefix and suffix are truncated to the part nearest to the cursor. Private keys are removed
from the prefix before that, because a part of a private key without its header does not look like a
private key. The sender removes all other secrets.
"""

from typing import Final

from caret.contracts.captured_content import (
    MAX_CHAT_CHARS,
    MAX_PREFIX_CHARS,
    MAX_SUFFIX_CHARS,
    MAX_SUGGESTION_EDIT_CHARS,
    CapturedCompletion,
    CapturedSuggestionEdit,
    ChatTurn,
)
from caret.contracts.usage import FinishReason
from inference.completion.incoming_request import ChatMessage
from inference.completion.request import Principal
from inference.completion.request_trace import RequestTrace
from inference.completion.suggestion_edit import SuggestionEdit
from inference.context.redaction.redact import (
    MAX_KEY_CHARS,
    ends_in_private_key,
    redact_private_keys,
)

# With these finish reasons, the client shows the text exactly as it was sent.
_CAPTURED_REASONS: Final = frozenset({FinishReason.STOP, FinishReason.LENGTH})


def capture_completion(trace: RequestTrace) -> CapturedCompletion | None:
    """Return the content.

    None: the content may not be stored, no text was sent, the client does not show the text exactly
    as it was sent, or the cursor is in a private key. In the last case, the completion may be a
    part of the private key.
    """
    admitted, texts = trace.admitted, trace.texts
    if admitted is None or not texts or trace.finish_reason not in _CAPTURED_REASONS:
        return None
    request, user_id = admitted.request, admitted.principal.credential.user_id
    if user_id is None or not admitted.principal.is_content_captured:
        return None
    if ends_in_private_key(request.prefix):
        return None
    # The additional characters contain the header of a private key that begins before the limit.
    prefix = redact_private_keys(request.prefix[-(MAX_PREFIX_CHARS + MAX_KEY_CHARS) :])
    return CapturedCompletion(
        request_id=trace.arrival.request_id,
        user_id=user_id,
        occurred_at_ms=trace.arrival.occurred_at_ms,
        completion=replace_surrogates("".join(texts)),
        finish_reason=trace.finish_reason,
        mode=request.mode,
        language=request.language,
        repository=replace_surrogates(request.repository),
        path=replace_surrogates(request.path),
        prefix=replace_surrogates(prefix[-MAX_PREFIX_CHARS:]),
        suffix=replace_surrogates(request.suffix[:MAX_SUFFIX_CHARS]),
        chat=_to_chat_turns(request.messages),
    )


def capture_suggestion_edit(
    principal: Principal, suggestion_edit: SuggestionEdit, *, now_ms: int
) -> CapturedSuggestionEdit | None:
    """Return the suggestion as the user edited it; None if it may not be stored or is too long."""
    user_id, text = principal.credential.user_id, suggestion_edit.text
    if user_id is None or not principal.is_content_captured:
        return None
    if len(text) > MAX_SUGGESTION_EDIT_CHARS:
        return None
    return CapturedSuggestionEdit(
        request_id=suggestion_edit.request_id,
        user_id=user_id,
        occurred_at_ms=now_ms,
        event=suggestion_edit.event,
        after_ms=suggestion_edit.after_ms,
        text=replace_surrogates(text),
    )


def _to_chat_turns(messages: tuple[ChatMessage, ...]) -> tuple[ChatTurn, ...]:
    """Return the last messages that fit into MAX_CHAT_CHARS completely, oldest first."""
    turns, remaining_chars = list[ChatTurn](), MAX_CHAT_CHARS
    for message in reversed(messages):
        remaining_chars -= len(message.text)
        if remaining_chars < 0:
            break
        turns.append(ChatTurn(replace_surrogates(message.role), replace_surrogates(message.text)))
    return tuple(reversed(turns))


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates by question marks. They are valid in JSON but not in UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
