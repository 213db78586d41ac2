"""The filter's effect on the quality of completions, for questions with known answers.

The questions are single lines and blocks (see `eval_set`). A real engine answers the prompts that
the gateway would send. Its text is judged three times: unfiltered (`engine`), through the filter
without its parser (`plain`), and through the whole filter (`syntax`). The results are how often the
shown text leaves the file parseable (by Python's own parser), how often it equals the original
text, and how often nothing is shown. The cost of the filter is reported too: its CPU time, and by
how many tokens it delays the first text. The filter of public code is measured on its own.

    python -m tests.benchmarks.quality [--up .caret/up.json] [--lines 200] [--blocks 120]

To check only that the benchmark runs: `--lines 10 --blocks 5`.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Final

from caret.contracts.usage import FinishReason
from caret.foundation.clock import SystemClock
from caret.foundation.ids import CacheSalt
from caret.foundation.parsing.grammars import Grammar
from inference.completion.incoming_request import IncomingRequest, UnvalidatedRequest
from inference.completion.request import AdmittedRequest, Principal
from inference.completion.request_trace import RequestTrace
from inference.completion.variant import Variant
from inference.context.assemble import assemble
from inference.context.prompt.prompt import Prompt
from inference.context.prompt.prompt_writer import PromptWriter
from inference.context.tokenization.tokenizer import load_tokenizer
from inference.demo_model.corpus import standard_library
from inference.demo_model.evaluation.probes import is_parsable
from inference.filtering.build_public_code_index import write_index
from inference.filtering.filter import filter
from inference.filtering.public_code_index import PublicCodeIndexFile, PublicCodeMatcher
from inference.filtering.syntax_check import SyntaxChecker, make_parser
from inference.gateway.receive import receive
from inference.pools.engine import EngineChunk, EngineRequest, EngineStop
from inference.pools.pool_config import Pool, read_pool_config
from inference.pools.vllm.engine import VllmEngine
from inference.pools.vllm.http_client import HttpClient
from tests.benchmarks.eval_set import Question, choose_questions
from tests.benchmarks.installation import build_gateway_service, create_home, engine_of, new_tenant
from tests.benchmarks.results import Report, percentile, say
from tests.benchmarks.synthetic_code import tier_of

# The answers are shorter than this. The engine would continue until it is stopped.
_MAX_TOKENS: Final = {"line": 64, "block": 128}
MAX_LOST_EXACT: Final = 0.01
_MAX_STALL_S: Final = 30.0
_NUM_AT_ONCE: Final = 8
_CHUNK_CHARS: Final = 4  # about the length of a token
_NUM_ROUNDS: Final = 3
_FILTERS: Final = ("engine", "plain", "syntax")
_LONG_FILE_LINES: Final = 5_000
_MAX_VALID_P99_MICROS: Final = 2_000.0

Answered = tuple[list[EngineChunk], AdmittedRequest, Prompt]  # a response and its request


@dataclass(slots=True)
class FilterResults:
    """The results of one filter for the engine's completions, in the order of the questions."""

    texts: list[str] = field(default_factory=list)
    parse_results: list[bool | None] = field(default_factory=list)  # None: nothing is shown
    exact_matches: list[bool] = field(default_factory=list)
    # Chunks until the first text was sent; None: no text was sent.
    first_chunks: list[int | None] = field(default_factory=list)
    cpu_micros: list[float] = field(default_factory=list)

    @property
    def num_shown(self) -> int:
        return sum(map(bool, self.texts))


def main(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    report = Report("quality")
    selected_questions = choose_questions(
        num_lines=options.lines, num_blocks=options.blocks, seed=options.seed
    )
    with create_home() as home, engine_of(options.up, home) as engine_url:
        # This writes the pools file. The gateway is not started.
        build_gateway_service(home, port=0, replicas=(engine_url,), has_token_healing=True)
        _measure(home.paths.pools, selected_questions, report)
    asyncio.run(_measure_answers(report, selected_questions))
    _measure_cpu(report, selected_questions)
    _measure_public_code(report, selected_questions)
    return report.exit_status


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--up", type=Path, help="up.json of a running installation")
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--blocks", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(arguments)


@dataclass(frozen=True, slots=True)
class PreparedQuestion:
    """A question, and the request that the engine gets for it."""

    question: Question
    pool: Pool
    admitted: AdmittedRequest
    prompt: Prompt


def _measure(pools_file: Path, questions: Sequence[Question], report: Report) -> None:
    """Report the results of the three filters.

    The prompts are computed before the requests, and the results after them: connections to the
    engine would time out while computation blocked the event loop.
    """
    prepared_questions = _prepare_questions(pools_file, questions)
    answers = asyncio.run(_request_answers(prepared_questions))
    results = asyncio.run(_judge_all(prepared_questions, answers))
    for kind in ("line", "block"):
        by_filter = {filter_name: results[kind, filter_name] for filter_name in _FILTERS}
        _report_results(report, kind, by_filter)


def _prepare_questions(pools_file: Path, questions: Sequence[Question]) -> list[PreparedQuestion]:
    pools = read_pool_config(pools_file)
    writers = {pool.name: _writer(pool) for pool in pools.by_name.values()}
    prepared_questions = []
    for question in questions:
        pool, admitted = pools.find_shared(tier_of(question.mode)), _admitted(question)
        prepared_questions.append(
            PreparedQuestion(question, pool, admitted, assemble(writers[pool.name], admitted))
        )
    return prepared_questions


async def _request_answers(
    prepared_questions: Sequence[PreparedQuestion],
) -> list[list[EngineChunk]]:
    slots = asyncio.Semaphore(_NUM_AT_ONCE)
    num_answered = 0

    async def answer(prepared_question: PreparedQuestion, engine: VllmEngine) -> list[EngineChunk]:
        nonlocal num_answered
        async with slots:
            chunks = await _complete(engine, prepared_question)
        num_answered += 1
        if num_answered % 20 == 0:
            say(f"{num_answered} of {len(prepared_questions)} responses")
        return chunks

    async with HttpClient(max_stall_s=_MAX_STALL_S) as client:
        engine = VllmEngine(client)
        return await asyncio.gather(
            *(answer(prepared_question, engine) for prepared_question in prepared_questions)
        )


async def _judge_all(
    prepared_questions: Sequence[PreparedQuestion], answers: Sequence[list[EngineChunk]]
) -> dict[tuple[str, str], FilterResults]:
    """Judge each completion with each filter; return results by kind and filter."""
    results = {pair: FilterResults() for pair in product(("line", "block"), _FILTERS)}
    for prepared_question, chunks in zip(prepared_questions, answers, strict=True):
        for filter_name in _FILTERS:
            answered = (chunks, prepared_question.admitted, prepared_question.prompt)
            question = prepared_question.question
            await _judge(results[question.kind, filter_name], question, filter_name, answered)
    return results


def _writer(pool: Pool) -> PromptWriter:
    return PromptWriter(
        load_tokenizer(pool.tokenizer),
        model=pool.model,
        max_context_tokens=pool.max_context_tokens,
        clock=SystemClock(),
        options=pool.prompt_options,
    )


def _admitted(question: Question, variant: str = "") -> AdmittedRequest:
    snapshot, _ = new_tenant("benchmark", root_secret=bytes(32))
    draft = UnvalidatedRequest(
        mode=question.mode,
        prefix=question.prefix,
        suffix=question.suffix,
        path=question.path,
        language="python",
        max_tokens=_MAX_TOKENS[question.kind],
    )
    return AdmittedRequest(
        Principal(credential=snapshot.credentials[0], snapshot=snapshot),
        receive(_incoming(draft)),
        pool="",
        variant=Variant(name=variant, filter=variant or None),
    )


def _incoming(draft: UnvalidatedRequest) -> IncomingRequest:
    return IncomingRequest(
        "benchmark", key_text=None, address=None, draft=draft, received_s=0.0, occurred_at_ms=0
    )


async def _complete(engine: VllmEngine, prepared_question: PreparedQuestion) -> list[EngineChunk]:
    """Return the engine's chunks; a single-line completion ends with its line."""
    prompt = prepared_question.prompt
    request = EngineRequest(
        pool=prepared_question.pool,
        replica=prepared_question.pool.replicas[0],
        token_ids=prompt.token_ids,
        stop_token_ids=prompt.stop_token_ids,
        required_prefix=prompt.healed_prefix,
        stop=("\n",) if prompt.is_single_line else (),
        max_tokens=prepared_question.admitted.request.max_tokens,
        salt=CacheSalt("00"),
        priority=1,
    )
    async with engine.complete(request) as chunks:
        return [chunk async for chunk in chunks]


async def _judge(
    results: FilterResults, question: Question, filter_name: str, answered: Answered
) -> None:
    chunks, admitted, prompt = answered
    if filter_name == "engine":
        text = "".join(chunk.text for chunk in chunks).rstrip()
        _add_result(results, question, text.removeprefix(prompt.healed_prefix))
        return
    variant = Variant(name=filter_name, filter=filter_name)
    draft = UnvalidatedRequest(mode=question.mode, prefix="")
    trace = RequestTrace(arrival=_incoming(draft), clock=SystemClock())
    replay = _Replay(chunks)
    subject = AdmittedRequest(admitted.principal, admitted.request, pool="", variant=variant)
    texts: list[str] = []
    began_ns = time.thread_time_ns()
    first_chunk: int | None = None
    async with filter(replay.stream(), subject, prompt, trace) as stream:
        async for text in stream:
            first_chunk = first_chunk or replay.num_sent
            texts.append(text)
    results.cpu_micros.append((time.thread_time_ns() - began_ns) / 1_000)
    results.first_chunks.append(first_chunk)
    _add_result(
        results, question, "" if trace.finish_reason is FinishReason.FILTERED else "".join(texts)
    )


class _Replay:
    def __init__(self, chunks: Sequence[EngineChunk]) -> None:
        self._chunks = chunks
        self.num_sent = 0

    async def stream(self) -> AsyncIterator[EngineChunk]:
        for chunk in self._chunks:
            self.num_sent += 1
            yield chunk


def _add_result(results: FilterResults, question: Question, text: str) -> None:
    results.texts.append(text)
    results.exact_matches.append(text == question.answer.rstrip())
    document = question.prefix + text + question.suffix
    results.parse_results.append(is_parsable(document) if text else None)


def _report_results(report: Report, kind: str, by_filter: dict[str, FilterResults]) -> None:
    number = len(by_filter["engine"].texts)
    if not number:
        return
    for filter_name, results in by_filter.items():
        about = {"n": number, "shown": results.num_shown}
        parsed = sum(map(bool, results.parse_results)) / max(1, results.num_shown)
        report.figure(f"{kind}.{filter_name}.parses", parsed, "share of shown", **about)
        report.figure(
            f"{kind}.{filter_name}.exact", sum(results.exact_matches) / number, "share", **about
        )
    before, after = by_filter["engine"], by_filter["syntax"]
    for earlier in ("engine", "plain"):
        _report_lost(report, f"{kind}.exact_lost_of_{earlier}", by_filter[earlier], after)
    pairs = zip(before.parse_results, after.parse_results, strict=True)
    still_parses = [bool(parses_after) for parsed_before, parses_after in pairs if parsed_before]
    num_parsed, parsed_share = len(still_parses), sum(still_parses) / max(1, len(still_parses))
    report.figure(f"{kind}.parseable_kept", parsed_share, "of what parsed unfiltered", n=num_parsed)
    firsts = zip(after.first_chunks, by_filter["plain"].first_chunks, strict=True)
    delay_tokens = [
        syntax_chunk - plain_chunk
        for syntax_chunk, plain_chunk in firsts
        if syntax_chunk is not None and plain_chunk is not None
    ]
    report.target(f"{kind}.first_text_later", max(delay_tokens, default=0), "tokens", at_most=0.0)
    for filter_name in ("plain", "syntax"):
        micros = by_filter[filter_name].cpu_micros
        p50, p99 = percentile(micros, 50), percentile(micros, 99)
        report.figure(f"{kind}.{filter_name}.cpu", p50, "us", p99=p99, n=number)


def _report_lost(report: Report, figure: str, before: FilterResults, after: FilterResults) -> None:
    """Report the share of exact matches of `before` that are lost in `after`."""
    lost = (sum(before.exact_matches) - sum(after.exact_matches)) / len(before.texts)
    pairs = zip(before.exact_matches, after.exact_matches, strict=True)
    withheld = sum(was_exact and not is_exact for was_exact, is_exact in pairs)
    report.target(figure, lost, "share", at_most=MAX_LOST_EXACT, withheld=withheld)


async def _measure_answers(report: Report, selected_questions: Sequence[Question]) -> None:
    """Report how often the filter changes the original text.

    The original text is correct by definition, so a filter should not change it, however good the
    model is.
    """
    for filter_name in ("plain", "syntax"):
        results = FilterResults()
        for question in selected_questions:
            prompt = Prompt(token_ids=[], stop_token_ids=[], is_single_line=question.kind == "line")
            answered = (_in_chunks(question.answer), _admitted(question), prompt)
            await _judge(results, question, filter_name, answered)
        name, number = f"answers_changed.{filter_name}", len(selected_questions)
        share = 1 - sum(results.exact_matches) / number
        report.target(name, share, "share", at_most=MAX_LOST_EXACT, n=number)


def _in_chunks(text: str) -> list[EngineChunk]:
    parts = [text[start : start + _CHUNK_CHARS] for start in range(0, len(text), _CHUNK_CHARS)]
    end_chunk = EngineChunk("", generated_tokens=len(parts), stop=EngineStop.STOP)
    return [*(EngineChunk(part, number, None) for number, part in enumerate(parts, 1)), end_chunk]


def _measure_cpu(report: Report, selected_questions: Sequence[Question]) -> None:
    """Measure the syntax check alone, with the cursor in the middle of a file of 5,000 lines."""
    lines = [question for question in selected_questions if question.kind == "line"]
    filler = "\n\n".join(sorted({question.prefix for question in lines}, key=len)[-8:])  # longest
    head = "\n".join(filler.split("\n")[: _LONG_FILE_LINES // 2])
    micros: dict[bool, list[float]] = {True: [], False: []}  # by `is_valid`
    for question in lines:
        for text in (question.answer, f"{question.answer})) ]"):  # the second one is broken
            is_valid, took = _syntax_check_micros(
                text, f"{head}\n{question.prefix}", f"{question.suffix}\n{head}"
            )
            micros[is_valid].append(took)
    for is_valid, values in micros.items():
        if not values:
            continue
        name = f"syntax_cpu.{'sound' if is_valid else 'broken'}"
        p50, p99 = percentile(values, 50), percentile(values, 99)
        fields = {"p50": p50, "n": len(values), "lines": _LONG_FILE_LINES}
        if is_valid:
            report.target(name, p99, "us", at_most=_MAX_VALID_P99_MICROS, **fields)
        else:
            report.figure(name, p99, "us", **fields)


def _syntax_check_micros(text: str, prefix: str, suffix: str) -> tuple[bool, float]:
    """Return whether the text is valid, and the CPU time of the check in microseconds.

    The time is the minimum of a few rounds, which other work of the machine affects least.
    """
    took, is_valid = [], False
    for _ in range(_NUM_ROUNDS):
        syntax = SyntaxChecker(
            Grammar.PYTHON, make_parser(Grammar.PYTHON), prefix=prefix, suffix=suffix
        )
        began_ns = time.thread_time_ns()
        is_valid = syntax.is_valid(text)
        took.append((time.thread_time_ns() - began_ns) / 1_000)
    return is_valid, min(took)


def _measure_public_code(report: Report, selected_questions: Sequence[Question]) -> None:
    """Measure the public-code filter, which is off by default, for texts of 250 characters."""
    blocks = [question for question in selected_questions if question.kind == "block"]
    if not blocks:
        return
    with tempfile.TemporaryDirectory() as folder:
        began_s = time.process_time()
        write_index(standard_library() / "email", Path(folder, "index"))
        report.figure("public_code.index", time.process_time() - began_s, "s", of="stdlib email")
        index = PublicCodeIndexFile(Path(folder, "index"))
        micros = []
        for question in blocks:
            text = (question.answer * 250)[:250]  # repeated until it is long enough
            began_ns = time.thread_time_ns()
            PublicCodeMatcher(index, prefix=question.prefix).feed(text)
            micros.append((time.thread_time_ns() - began_ns) / 1_000)
    p50, p99 = percentile(micros, 50), percentile(micros, 99)
    report.figure("public_code.cpu", p50, "us", p99=p99, n=len(micros))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
