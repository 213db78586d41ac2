"""filter: of the engine's stream goes on what is worth showing; what is decided ends it."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Final

from caret.contracts.usage import Finish
from caret.foundation.environment import BadSetting
from caret.foundation.grammars import grammar_of
from inference.completion.account import Account
from inference.completion.request import Admitted
from inference.completion.variant import Variant
from inference.context.prompt import Prompt
from inference.context.redact import file_type
from inference.filtering.credentials import has_credential, held_from
from inference.filtering.cut import Cutter
from inference.filtering.gate import Checks, Gate
from inference.filtering.reasons import CutReason
from inference.filtering.surroundings import surroundings_of
from inference.filtering.syntax import Syntax, parser_of
from inference.pools.engine import Chunk, EngineStop

FILTERS: Final = ("syntax", "plain")  # what an experiment may name; plain: without the parser


def check_filters(variants: Iterable[Variant]) -> None:
    """Raises BadSetting when one names a filter that there is not."""
    for variant in variants:
        if variant.filter not in (None, *FILTERS):
            known = ", ".join(FILTERS)
            raise BadSetting(f"{variant.name}: the filter is {variant.filter!r}; it is {known}.")


@asynccontextmanager
async def filter(
    chunks: AsyncIterator[Chunk],
    admitted: Admitted,
    prompt: Prompt,
    account: Account,
) -> AsyncIterator[AsyncIterator[str]]:
    """Yields the texts to show, none of them empty. Raw prompts and chats pass as they are.

    The account gets the ending: `stop` or `length` by the engine, `stop` where the filter cut,
    `filtered` when the engine wrote something and nothing of it is worth showing, even of what was
    sent; and the reason of a cut.
    """
    request = admitted.request
    if request.is_raw or request.messages:
        texts = _unfiltered(chunks, account)
    else:
        around = surroundings_of(request, is_single_line=prompt.is_single_line)
        line_before = request.prefix.rpartition("\n")[2]
        gate = Gate(_checks(admitted), line_before=line_before)
        texts = _filtered(chunks, Cutter(around), gate, account)
    async with aclosing(texts):
        yield texts


def _checks(admitted: Admitted) -> Checks:
    request, policy = admitted.request, admitted.principal.snapshot.policy
    grammar = grammar_of(request.language, request.path) if _parses(admitted.variant) else None
    is_sound = None
    if grammar is not None:
        syntax = Syntax(grammar, parser_of(grammar), prefix=request.prefix, suffix=request.suffix)
        is_sound = syntax.is_sound
    if not policy.withholds_secrets:
        return Checks(is_sound=is_sound)
    kind = file_type(request.path)
    return Checks(
        is_sound=is_sound,
        held_from=partial(held_from, kind=kind),
        has_secret=partial(has_credential, kind=kind),
    )


def _parses(variant: Variant) -> bool:
    return variant.filter != "plain"


async def _unfiltered(chunks: AsyncIterator[Chunk], account: Account) -> AsyncGenerator[str, None]:
    stop: EngineStop | None = None
    async for chunk in chunks:
        stop = chunk.stop or stop
        if chunk.text:
            yield chunk.text
    account.finish(_finish(stop))


async def _filtered(
    chunks: AsyncIterator[Chunk], cutter: Cutter, gate: Gate, account: Account
) -> AsyncGenerator[str, None]:
    stop: EngineStop | None = None
    has_text = has_shown = False
    async for chunk in chunks:
        stop = chunk.stop or stop
        has_text = has_text or bool(chunk.text)
        if shown := gate.feed(cutter.feed(chunk.text)):
            has_shown = True
            yield shown
        if (cutter.has_ended or gate.has_ended) and stop is None:
            break  # leaving stops the engine
    if shown := gate.feed(cutter.finish()) + gate.finish():
        has_shown = True
        yield shown
    is_blank = has_text and not has_shown
    reason = gate.reason or cutter.reason or (CutReason.BLANK if is_blank else None)
    account.cut_reason = reason or ""
    is_withheld = is_blank or gate.is_withheld
    account.finish(Finish.FILTERED if is_withheld else _finish(stop))


def _finish(stop: EngineStop | None) -> Finish:
    return Finish.LENGTH if stop is EngineStop.LENGTH else Finish.STOP
