"""The filter returns whole suggestions for outputs of models in 35 languages."""

import re
from typing import Final

from caret.foundation.parsing.grammars import grammar_of
from caret.foundation.parsing.parse import ParseBudget, parse
from inference.context.prompt.line_or_block import is_single_line
from inference.filtering.filter import filter
from inference.filtering.syntax_check import count_syntax_errors
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.pools import make_engine_request
from tests.fakes.requests import make_admitted, make_prompt, make_trace
from tests.unit.inference.filter_case_files import FilterCase, read_cases

MIN_CASES: Final = 300
MIN_LANGUAGES: Final = 25
MIN_SHARE: Final = 0.95
_PIECE: Final = re.compile(r"\s*\w+|\s*\W|\s+")  # about a token
_STRING: Final = re.compile(r'"[^"\n]*"')


async def _show(case: FilterCase) -> str:
    admitted = make_admitted(
        language=case.language,
        path="",
        mode=case.mode,
        prefix=case.prefix,
        suffix=case.suffix,
    )
    prompt = make_prompt(is_single_line=is_single_line(admitted.request))
    engine = FakeEngine(chunks_of(*_PIECE.findall(case.output)))
    trace = make_trace()
    async with (
        engine.complete(make_engine_request()) as chunks,
        filter(chunks, admitted, prompt, trace) as texts,
    ):
        shown = "".join([text async for text in texts])
    return "" if trace.finish_reason == "filtered" else shown.rstrip()


def _count_errors(case: FilterCase, shown: str) -> int:
    """Count syntax errors; without a grammar, brackets without a partner."""
    text = case.prefix + shown + case.suffix
    grammar = grammar_of(case.language)
    if grammar is None:
        return _count_unmatched(text)
    return count_syntax_errors(parse(grammar, text.encode(), allowance=ParseBudget(total_s=5)))


def _count_unmatched(text: str) -> int:
    unmatched = ""
    for bracket in re.sub(r"[^()\[\]{}]", "", _STRING.sub("", text)):
        if unmatched[-1:] + bracket in ("()", "[]", "{}"):
            unmatched = unmatched[:-1]
        else:
            unmatched += bracket
    return len(unmatched)


async def test_the_wanted_text_is_shown_and_no_file_is_left_more_broken() -> None:
    cases = read_cases()
    shown = {case.name: await _show(case) for case in cases}

    wrong = [case for case in cases if shown[case.name] != case.wanted]
    broken = [
        case.name
        for case in wrong
        if _count_errors(case, shown[case.name])
        > max(_count_errors(case, ""), _count_errors(case, case.wanted))
    ]

    assert len(cases) >= MIN_CASES
    assert len(shown) == len(cases), "a title occurs twice"
    assert len({case.language for case in cases}) >= MIN_LANGUAGES
    assert not broken
    assert len(wrong) <= (1 - MIN_SHARE) * len(cases), [case.name for case in wrong]
