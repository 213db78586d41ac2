"""The finish reason in the terms of each protocol (the table is in platform/docs/clients.md).

A completion that was shed, superseded, cancelled, filtered or over budget must not look like the
model's own answer. Strict clients reject values that their protocol does not define. Each protocol
therefore gets a defined value, and `caret_finish_reason` beside it names the finish reason.
"""

from typing import Final

import msgspec

from caret.contracts.usage import FinishReason
from inference.completion.request_trace import RequestTrace
from inference.consumers.base import Headers

_FINISH_HEADER: Final = b"x-caret-finish-reason"
_REGULAR: Final = (
    FinishReason.STOP,
    FinishReason.LENGTH,
    None,
)  # None: a warm-up, which has no completion


def finish_headers(account: RequestTrace) -> Headers:
    """Return the header `X-Caret-Finish-Reason`; none for a warm-up."""
    return (
        []
        if account.finish_reason is None
        else [(_FINISH_HEADER, account.finish_reason.value.encode())]
    )


def caret_finish_reason(account: RequestTrace) -> str | msgspec.UnsetType:
    """Return the finish reason; unset if the protocol's own value is exact."""
    if account.finish_reason is None or account.finish_reason in _REGULAR:
        return msgspec.UNSET
    return account.finish_reason.value


def openai_finish_reason(account: RequestTrace) -> str:
    """Return OpenAI's value. `content_filter` is its only one for text that was left out."""
    return _finish_reason_of(account, otherwise="content_filter")


def mistral_finish_reason(account: RequestTrace) -> str:
    return _finish_reason_of(account, otherwise="error")


def ollama_done_reason(account: RequestTrace) -> str:
    """Return the finish reason itself: Ollama defines no fixed set of values."""
    return "stop" if account.finish_reason is None else account.finish_reason.value


def llama_stop_type(account: RequestTrace) -> str:
    """Return llama.cpp's value; `none` is neither an end of text nor a limit."""
    if account.finish_reason is FinishReason.LENGTH:
        return "limit"
    return "eos" if account.finish_reason in _REGULAR else "none"


def _finish_reason_of(account: RequestTrace, *, otherwise: str) -> str:
    if account.finish_reason is FinishReason.LENGTH:
        return "length"
    return "stop" if account.finish_reason in _REGULAR else otherwise
