"""The filter stage: forward useful text, and stop the engine as soon as the result is certain."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing
from functools import lru_cache, partial
from typing import Final

import structlog

from caret.contracts.policy import Mode
from caret.contracts.usage import FinishReason
from caret.foundation.environment import BadSetting
from caret.foundation.ids import TenantId
from caret.foundation.parsing.grammars import grammar_of
from inference.completion.request import AdmittedRequest, CompletionRequest
from inference.completion.request_trace import RequestTrace
from inference.completion.variant import Variant
from inference.context.prompt.cursor_text import line_before
from inference.context.prompt.prompt import Prompt
from inference.context.redaction.redact import file_type
from inference.filtering.docstring_end import end_docstring
from inference.filtering.edits.propose_edit import propose_edit
from inference.filtering.filter_reason import FilterReason
from inference.filtering.line_gate import LineChecks, LineGate
from inference.filtering.public_code_index import PublicCodeIndex, PublicCodeMatcher
from inference.filtering.secret_detection import contains_secret, find_pending_secret
from inference.filtering.syntax_check import SyntaxChecker, make_parser
from inference.filtering.truncation.truncation_context import build_truncation_context
from inference.filtering.truncation.truncator import Truncator
from inference.pools.engine import EngineChunk, EngineStop


class TokenHealer:
    """Removes the word that the prompt withheld (`healed`) from the beginning of the completion."""

    def __init__(self, healed: str) -> None:
        self._awaited = healed  # the part of the withheld word that was not generated yet
        self.reason: FilterReason | None = None  # set when no text can be shown

    def feed(self, text: str) -> str:
        """Return the text after the withheld word, or "" while the word is incomplete."""
        if self.reason is not None:
            return ""
        num_common = min(len(self._awaited), len(text))
        if self._awaited[:num_common] != text[:num_common]:
            self.reason = FilterReason.HEALING_MISMATCH
            return ""
        self._awaited = self._awaited[num_common:]
        return text[num_common:]

    def finish(self) -> None:
        """Set the reason if the engine's text has ended before the end of the withheld word."""
        if self._awaited:
            self.reason = FilterReason.HEALING_MISMATCH


log = structlog.get_logger(__name__)
# Only secrets that begin at most this many characters before the cursor are found. The gate checks
# these characters with each piece of the first line.
_LINE_BEFORE_CHARS: Final = 200
FILTERS: Final = ("syntax", "plain")  # for experiments; "plain" does not check the syntax


def check_filters(variants: Iterable[Variant]) -> None:
    """Check the variants' filter names. Raises BadSetting."""
    for variant in variants:
        if variant.filter not in (None, *FILTERS):
            names = ", ".join(FILTERS)
            raise BadSetting(
                f"{variant.name}: the filter is {variant.filter!r}; it must be one of {names}."
            )


def filter(
    chunks: AsyncIterator[EngineChunk],
    admitted: AdmittedRequest,
    prompt: Prompt,
    trace: RequestTrace,
    *,
    public_code: PublicCodeIndex | None = None,
) -> aclosing[AsyncGenerator[str, None]]:
    """Return a context manager with the texts to show, none of them empty.

    Leaving the context closes the stream.

    The answers to raw prompts and chats are not truncated, but text that the policy withholds is
    removed. An edit has no texts: the request trace gets the edit.

    The request trace also gets the filter reason and the finish reason:
    - `stop` or `length` from the engine (`length` if the engine was lost);
    - `stop` if the filter truncated the completion;
    - `filtered` if the engine generated text and the client must show nothing, even if a part of
      the text was sent.
    """
    request = admitted.request
    if prompt.region is not None:
        checks = _make_line_checks(admitted, syntax=None, public_code=public_code)
        return aclosing(propose_edit(chunks, admitted, prompt.region, checks, trace))
    if request.is_raw or request.messages:
        checks = _make_line_checks(admitted, syntax=None, public_code=public_code)
        return aclosing(_forward_verbatim(chunks, checks, request, trace))
    if request.mode is Mode.DOCSTRING:
        chunks = end_docstring(chunks, request.prefix)
    context = build_truncation_context(request, is_single_line=prompt.is_single_line)
    syntax = _make_syntax_checker(request, admitted.variant)
    trace.is_syntax_checked = syntax is not None
    truncator = Truncator(context, syntax.can_continue if syntax is not None else None)
    checks = _make_line_checks(admitted, syntax=syntax, public_code=public_code)
    gate = LineGate(
        checks,
        line_before=_clip_line_before(request.prefix),
        # "stream" is the WebSocket protocol: its clients show text as it arrives.
        client_shows_text_early=trace.arrival.protocol == "stream",
    )
    return aclosing(
        _forward_filtered(chunks, TokenHealer(prompt.healed_prefix), truncator, gate, trace)
    )


def make_line_continuation(
    request: CompletionRequest, prompt: Prompt
) -> Callable[[str], bool] | None:
    """Return a function that tells whether a completion continues below its first line.

    None: the engine does not stop after the first line, or the client wants it to stop there.
    """
    if not prompt.is_single_line or "\n" in request.stop:
        return None
    return partial(_continues_below, request, prompt)


def _continues_below(request: CompletionRequest, prompt: Prompt, text: str) -> bool:
    healer = TokenHealer(prompt.healed_prefix)
    truncator = Truncator(build_truncation_context(request, is_single_line=True))
    truncator.feed(healer.feed(text) + "\n")
    return healer.reason is None and not truncator.has_ended


def _clip_line_before(prefix: str) -> str:
    """Return the text before the cursor on its line, or the end of a long text."""
    return line_before(prefix)[-_LINE_BEFORE_CHARS:]


def _make_line_checks(
    admitted: AdmittedRequest, *, syntax: SyntaxChecker | None, public_code: PublicCodeIndex | None
) -> LineChecks:
    request, policy = admitted.request, admitted.principal.snapshot.policy
    kind = file_type(request.path)
    is_public = None
    if policy.has_public_code_filter:
        if public_code is None:
            _warn_without_index(admitted.principal.snapshot.tenant_id)
        else:
            is_public = PublicCodeMatcher(public_code, prefix=request.prefix).feed
    return LineChecks(
        is_valid=syntax.is_valid if syntax is not None else None,
        # In mode fim the client decides where the completion ends.
        has_block_ended=syntax.has_block_ended if syntax and request.mode is not Mode.FIM else None,
        find_pending_secret=partial(find_pending_secret, kind=kind)
        if policy.has_secret_filter
        else None,
        contains_secret=partial(contains_secret, kind=kind) if policy.has_secret_filter else None,
        is_public=is_public,
    )


def _make_syntax_checker(request: CompletionRequest, variant: Variant) -> SyntaxChecker | None:
    grammar = grammar_of(request.language, request.path)
    if grammar is None or variant.filter == "plain":
        return None
    return SyntaxChecker(
        grammar, make_parser(grammar), prefix=request.prefix, suffix=request.suffix
    )


@lru_cache(maxsize=1_024)
def _warn_without_index(tenant_id: TenantId) -> None:
    """Warn once per tenant: its policy needs an index that this gateway does not have."""
    log.warning("filter.no_public_code_index", tenant_id=tenant_id)


async def _forward_verbatim(
    chunks: AsyncIterator[EngineChunk],
    checks: LineChecks,
    request: CompletionRequest,
    trace: RequestTrace,
) -> AsyncGenerator[str, None]:
    gate = LineGate(checks, line_before=_clip_line_before(request.prefix), is_verbatim=True)
    stop: EngineStop | None = None
    async for chunk in chunks:
        stop = chunk.stop or stop
        if visible_text := gate.feed(chunk.text):
            yield visible_text
        # After a stop, the engine sends only its counts. Then the stream is read to its end.
        if gate.has_ended and stop is None:
            break  # the pipeline then leaves `generate`, which stops the engine
    if visible_text := gate.finish():
        yield visible_text
    trace.filter_reason = _filter_reason_of(gate.reason, stop, is_withheld=gate.is_withheld)
    trace.finish(FinishReason.FILTERED if gate.is_withheld else _to_finish_reason(stop))


async def _forward_filtered(
    chunks: AsyncIterator[EngineChunk],
    healer: TokenHealer,
    truncator: Truncator,
    gate: LineGate,
    trace: RequestTrace,
) -> AsyncGenerator[str, None]:
    stop: EngineStop | None = None
    has_text = has_shown = False
    async for chunk in chunks:
        stop = chunk.stop or stop
        has_text = has_text or bool(chunk.text)
        if visible_text := gate.feed(truncator.feed(healer.feed(chunk.text))):
            has_shown = True
            yield visible_text
        # After a stop, the engine sends only its counts. Then the stream is read to its end.
        if (healer.reason or truncator.has_ended or gate.has_ended) and stop is None:
            break  # the pipeline then leaves `generate`, which stops the engine
    healer.finish()
    if visible_text := gate.feed(truncator.finish()) + gate.finish():
        has_shown = True
        yield visible_text
    is_blank = has_text and not has_shown
    reason = (
        healer.reason
        or gate.reason
        or truncator.reason
        or (FilterReason.BLANK if is_blank else None)
    )
    is_withheld = is_blank or gate.is_withheld
    trace.filter_reason = _filter_reason_of(reason, stop, is_withheld=is_withheld)
    trace.finish(FinishReason.FILTERED if is_withheld else _to_finish_reason(stop))


def _to_finish_reason(stop: EngineStop | None) -> FinishReason:
    """Return the finish reason. It is LENGTH if the engine was lost, and STOP if `stop` is None."""
    is_stop = stop in (None, EngineStop.STOP, EngineStop.LINE)
    return FinishReason.STOP if is_stop else FinishReason.LENGTH


def _filter_reason_of(
    reason: FilterReason | None, stop: EngineStop | None, *, is_withheld: bool
) -> str:
    if stop is EngineStop.DISCONNECTED and not is_withheld:
        # A truncation may be the effect of the lost stream.
        return FilterReason.ENGINE_DISCONNECTED
    return reason or ""
