"""Translates the finish reason into each protocol's values (table in platform/docs/clients.md).

A completion that was shed, superseded, cancelled, filtered or over budget must not look as if the
model had ended it. Strict clients reject values that their protocol does not define. Each protocol
therefore gets one of its own values, and the field `caret_finish_reason` has the finish reason.
"""

from typing import Final

import msgspec

from caret.contracts.usage import FinishReason
from inference.completion.request_trace import RequestTrace
from inference.consumers.base import Headers

_FINISH_HEADER: Final = b"x-caret-finish-reason"
# None is the finish reason of a warm-up, which has no completion.
_REGULAR: Final = (FinishReason.STOP, FinishReason.LENGTH, None)


def build_finish_headers(trace: RequestTrace) -> Headers:
    """Return the header `X-Caret-Finish-Reason`; none for a warm-up."""
    return (
        []
        if trace.finish_reason is None
        else [(_FINISH_HEADER, trace.finish_reason.value.encode())]
    )


def is_regular(trace: RequestTrace) -> bool:
    """Return whether each protocol has a value for exactly this finish reason."""
    return trace.finish_reason in _REGULAR


def caret_finish_reason(trace: RequestTrace) -> str | msgspec.UnsetType:
    """Return the finish reason; unset if the protocol's own value says the same."""
    if trace.finish_reason is None or is_regular(trace):  # None is regular; mypy cannot tell
        return msgspec.UNSET
    return trace.finish_reason.value


def openai_finish_reason(trace: RequestTrace) -> str:
    """Return OpenAI's value. OpenAI's only value for omitted text is `content_filter`."""
    return _select_finish_reason(trace, irregular="content_filter")


def mistral_finish_reason(trace: RequestTrace) -> str:
    """Return Mistral's value. Mistral's only value for omitted text is `error`."""
    return _select_finish_reason(trace, irregular="error")


def ollama_done_reason(trace: RequestTrace) -> str:
    """Return the finish reason itself: Ollama defines no fixed set of values."""
    return "stop" if trace.finish_reason is None else trace.finish_reason.value


def llama_stop_type(trace: RequestTrace) -> str:
    """Return llama.cpp's value; `none` means neither the end of the text nor a limit."""
    if trace.finish_reason is FinishReason.LENGTH:
        return "limit"
    return "eos" if trace.finish_reason in _REGULAR else "none"


def _select_finish_reason(trace: RequestTrace, *, irregular: str) -> str:
    if trace.finish_reason is FinishReason.LENGTH:
        return "length"
    return "stop" if trace.finish_reason in _REGULAR else irregular
