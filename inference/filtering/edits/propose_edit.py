"""Reads a model's answer to a request for the next edit, and records the edit in the trace."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

from caret.contracts.usage import FinishReason
from inference.completion.edit import ProposedEdit
from inference.completion.request import AdmittedRequest
from inference.completion.request_trace import RequestTrace
from inference.context.edits.editable_region import EditableRegion
from inference.filtering.edits.edit_rules import find_edit_grammar, find_objection
from inference.filtering.edits.line_replacement import find_replacement, to_proposed_edit
from inference.filtering.filter_reason import FilterReason
from inference.filtering.line_gate import LineChecks
from inference.pools.engine import EngineChunk, EngineStop

_NO_TEXTS: Final[tuple[str, ...]] = ()


async def propose_edit(
    chunks: AsyncIterator[EngineChunk],
    admitted: AdmittedRequest,
    region: EditableRegion,
    checks: LineChecks,
    trace: RequestTrace,
) -> AsyncGenerator[str, None]:
    """Yield no text. The request trace gets the edit, or the reason why there is no edit.

    The finish reason is `stop` if there is an edit or if the model changes nothing. It is `length`
    if the answer is too long or the engine was lost. It is `filtered` if the answer is unfinished
    or its edit is withheld.
    """
    answer, stop = "", None
    async for chunk in chunks:
        answer += chunk.text
        stop = chunk.stop or stop
        if region.edit_format.end_marker in answer:
            stop = EngineStop.STOP
            break  # the pipeline then leaves `generate`, which stops the engine
    for text in _NO_TEXTS:  # makes this function a generator
        yield text
    if stop in (EngineStop.LENGTH, EngineStop.DISCONNECTED):
        is_lost = stop is EngineStop.DISCONNECTED
        trace.filter_reason = FilterReason.ENGINE_DISCONNECTED if is_lost else ""
        trace.finish(FinishReason.LENGTH)
        return
    result = _read_answer(answer, admitted, region, checks, trace)
    if isinstance(result, ProposedEdit):
        trace.record_edit(result)
        trace.finish(FinishReason.STOP)
        return
    trace.filter_reason = result
    is_unchanged = result is FilterReason.NO_CHANGE
    trace.finish(FinishReason.STOP if is_unchanged else FinishReason.FILTERED)


def _read_answer(
    answer: str,
    admitted: AdmittedRequest,
    region: EditableRegion,
    checks: LineChecks,
    trace: RequestTrace,
) -> ProposedEdit | FilterReason:
    """Return the edit, or the reason why there is no edit to show."""
    text = region.edit_format.parse(answer)
    if text is None:
        return FilterReason.UNFINISHED
    replacement = find_replacement(region, text)
    if replacement is None:
        return FilterReason.NO_CHANGE
    grammar = find_edit_grammar(admitted)
    trace.is_syntax_checked = grammar is not None
    objection = find_objection(replacement, region, admitted.request, checks, grammar)
    return objection or to_proposed_edit(region, replacement)
