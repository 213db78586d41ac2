"""Sends the outputs of the filter's cases through the filter, as the pipeline does."""

import re
from typing import Final

from caret.foundation.parsing.grammars import grammar_of
from caret.foundation.parsing.parse import ParseBudget, parse
from inference.context.prompt.line_or_block import is_single_line
from inference.filtering.filter import filter, make_line_continuation
from inference.filtering.syntax_check import count_syntax_errors
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.pools import make_engine_request
from tests.fakes.requests import make_admitted, make_prompt, make_trace
from tests.unit.inference.filter_case_files import FilterCase

_TOKEN: Final = re.compile(r"\s*\w+|\s*\W|\s+")  # roughly one token of a model
_STRING: Final = re.compile(r'"[^"\n]*"')


async def get_shown_text(case: FilterCase, *, chunk: re.Pattern[str] = _TOKEN) -> str:
    """Return the text that an editor shows. `chunk` matches the text of one chunk."""
    admitted = make_admitted(
        language=case.language,
        path="",
        mode=case.mode,
        prefix=case.prefix,
        suffix=case.suffix,
    )
    prompt = make_prompt(is_single_line=is_single_line(admitted.request))
    output = case.output
    # For a single line, the engine stops at the first line break unless the text continues below.
    # For other completions, `make_line_continuation` returns None.
    if (continues_below := make_line_continuation(admitted.request, prompt)) is not None:
        first_line, _, _ = output.partition("\n")
        output = output if continues_below(first_line) else first_line
    engine = FakeEngine(chunks_of(*chunk.findall(output)))
    trace = make_trace()
    async with (
        engine.complete(make_engine_request()) as chunks,
        filter(chunks, admitted, prompt, trace) as texts,
    ):
        shown_text = "".join([text async for text in texts])
    return "" if trace.finish_reason == "filtered" else shown_text.rstrip()


def is_more_broken(case: FilterCase, shown_text: str) -> bool:
    """Return whether the shown text causes more errors than no text, and than the expected text.

    Syntax errors and unmatched brackets are counted separately. More of one kind suffices.
    """
    return any(
        count(case, shown_text) > max(count(case, ""), count(case, case.expected))
        for count in (_count_errors, _count_unmatched)
    )


def _count_errors(case: FilterCase, shown_text: str) -> int:
    """Return the number of syntax errors; 0 without a grammar."""
    grammar = grammar_of(case.language)
    if grammar is None:
        return 0
    text = case.prefix + shown_text + case.suffix
    tree = parse(grammar, text.encode(), budget=ParseBudget(total_s=5))
    return count_syntax_errors(tree, grammar)


def _count_unmatched(case: FilterCase, shown_text: str) -> int:
    """Return the number of unmatched brackets in the file with the shown text."""
    unmatched = ""
    text = _STRING.sub("", case.prefix + shown_text + case.suffix)
    for bracket in re.sub(r"[^()\[\]{}]", "", text):
        if unmatched[-1:] + bracket in ("()", "[]", "{}"):
            unmatched = unmatched[:-1]
        else:
            unmatched += bracket
    return len(unmatched)
