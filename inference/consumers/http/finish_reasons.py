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


def build_finish_headers(trace: RequestTrace) -> Headers:
    """Return the header `X-Caret-Finish-Reason`; none for a warm-up."""
    return (
        []
        if trace.finish_reason is None
        else [(_FINISH_HEADER, trace.finish_reason.value.encode())]
    )


def is_regular(trace: RequestTrace) -> bool:
    """Return whether the protocols' own values name the finish reason exactly."""
    return trace.finish_reason in _REGULAR


def caret_finish_reason(trace: RequestTrace) -> str | msgspec.UnsetType:
    """Return the finish reason; unset if the protocol's own value is exact."""
    if trace.finish_reason is None or is_regular(trace):
        return msgspec.UNSET
    return trace.finish_reason.value


def openai_finish_reason(trace: RequestTrace) -> str:
    """Return OpenAI's value. `content_filter` is its only one for text that was left out."""
    return _finish_reason_of(trace, otherwise="content_filter")


def mistral_finish_reason(trace: RequestTrace) -> str:
    return _finish_reason_of(trace, otherwise="error")


def ollama_done_reason(trace: RequestTrace) -> str:
    """Return the finish reason itself: Ollama defines no fixed set of values."""
    return "stop" if trace.finish_reason is None else trace.finish_reason.value


def llama_stop_type(trace: RequestTrace) -> str:
    """Return llama.cpp's value; `none` is neither an end of text nor a limit."""
    if trace.finish_reason is FinishReason.LENGTH:
        return "limit"
    return "eos" if trace.finish_reason in _REGULAR else "none"


def _finish_reason_of(trace: RequestTrace, *, otherwise: str) -> str:
    if trace.finish_reason is FinishReason.LENGTH:
        return "length"
    return "stop" if trace.finish_reason in _REGULAR else otherwise
