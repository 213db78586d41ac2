"""filter: the forwarded part of the engine's stream, and the completion's finish reason."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from caret.contracts.policy import Mode
from caret.contracts.usage import FinishReason
from caret.foundation.environment import BadSetting
from inference.completion.incoming_request import ChatMessage
from inference.completion.request_trace import RequestTrace
from inference.completion.variant import Variant
from inference.filtering.filter import FILTERS, check_filters, filter
from inference.filtering.filter_reason import FilterReason
from inference.filtering.public_code_index import PublicCodeIndex
from inference.pools.engine import EngineChunk, EngineStop
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.pools import make_engine_request
from tests.fakes.requests import make_admitted, make_prompt, make_trace
from tests.fakes.tenants import GLOBEX, make_policy, make_principal


async def _run_filter(
    engine: FakeEngine,
    trace: RequestTrace,
    *,
    is_single_line: bool = False,
    public_code: PublicCodeIndex | None = None,
    healed: str = "",
    **fields: Any,
) -> list[str]:
    """Return the forwarded texts. `healed`: the end of the prefix, which the engine must repeat."""
    prompt = replace(make_prompt(is_single_line=is_single_line), healed_prefix=healed)
    admitted = make_admitted(**fields)
    async with (
        asyncio.timeout(10.0),  # fails the test if the filter waits for an engine that hangs
        engine.complete(make_engine_request()) as chunks,
        filter(chunks, admitted, prompt, trace, public_code=public_code) as texts,
    ):
        return [text async for text in texts]


def _reasons(trace: RequestTrace) -> tuple[FinishReason | None, str]:
    """Return the finish reason and the filter reason."""
    return trace.finish_reason, trace.filter_reason


@pytest.mark.parametrize(
    ("stop", "finish_reason"),
    [(EngineStop.STOP, FinishReason.STOP), (EngineStop.LENGTH, FinishReason.LENGTH)],
)
@pytest.mark.parametrize("is_raw", [False, True])
async def test_the_engines_stop_decides_the_finish_reason(
    stop: EngineStop, finish_reason: FinishReason, is_raw: bool
) -> None:
    trace = make_trace()

    texts = await _run_filter(FakeEngine(chunks_of("b", "c", stop=stop)), trace, is_raw=is_raw)

    assert ("".join(texts), trace.finish_reason) == ("bc", finish_reason)


async def test_a_healed_prefix_is_not_shown_again() -> None:
    engine, trace = FakeEngine(chunks_of("re", "ad(path)")), make_trace()

    texts = await _run_filter(engine, trace, prefix="self.re", healed="re")

    assert ("".join(texts), trace.finish_reason) == ("ad(path)", FinishReason.STOP)


async def test_a_healing_mismatch_is_withheld_and_ends_the_engine_request() -> None:
    engine, trace = FakeEngine(chunks_of("wr", "ite", "(path)"), hangs=True), make_trace()

    texts = await _run_filter(engine, trace, prefix="self.re", healed="re")

    assert (texts, trace.finish_reason) == ([], FinishReason.FILTERED)
    assert trace.filter_reason == FilterReason.HEALING_MISMATCH


async def test_no_chunk_is_empty() -> None:
    texts = await _run_filter(FakeEngine(chunks_of("", "b", "", "  ", "c")), make_trace())

    assert all(texts)
    assert "".join(texts) == "b  c"


async def test_truncation_ends_with_stop_and_ends_the_engine_request() -> None:
    engine, trace = FakeEngine(chunks_of("b\n", "c = d", "e", "f"), hangs=True), make_trace()

    texts = await _run_filter(engine, trace, is_single_line=True)

    assert ("".join(texts), trace.finish_reason) == ("b", FinishReason.STOP)
    assert (engine.num_open, engine.num_yielded) == (0, 1)


async def test_a_stopped_engine_is_read_to_its_end() -> None:
    # Only the last chunk has the number of cached tokens.
    last = EngineChunk(text="", generated_tokens=1, stop=EngineStop.STOP, cached_tokens=16)
    engine = FakeEngine([*chunks_of("b\n"), last])

    await _run_filter(engine, make_trace(), is_single_line=True)

    assert engine.num_yielded == 2


async def test_a_blank_completion_has_the_finish_reason_filtered() -> None:
    trace = make_trace()

    texts = await _run_filter(FakeEngine(chunks_of("  ", "\n")), trace, is_single_line=True)

    assert (texts, trace.finish_reason) == ([], FinishReason.FILTERED)


async def test_an_engine_that_stops_without_text_gives_the_finish_reason_stop() -> None:
    trace = make_trace()

    texts = await _run_filter(FakeEngine(chunks_of("")), trace)

    assert (texts, trace.finish_reason) == ([], FinishReason.STOP)


async def test_the_text_for_a_raw_prompt_is_unchanged() -> None:
    outputs = ("  ", "\n\n", "a\na\na\n", "a ")

    texts = await _run_filter(FakeEngine(chunks_of(*outputs)), make_trace(), is_raw=True)

    assert texts == list(outputs)


async def test_held_back_text_is_shown_at_the_end() -> None:
    engine = FakeEngine(chunks_of("g(", "a)"))

    texts = await _run_filter(engine, make_trace(), prefix="f(", suffix=")\n", mode=Mode.FIM)

    assert "".join(texts) == "g(a)"


async def test_an_engine_error_is_raised() -> None:
    trace = make_trace()

    with pytest.raises(OSError, match="planted"):
        await _run_filter(FakeEngine(chunks_of("b", stop=None), error=OSError("planted")), trace)

    assert trace.finish_reason is None


class _EndlessEngine:
    """Yields chunks without end."""

    def __init__(self, chunks: Sequence[EngineChunk]) -> None:
        self.chunks = chunks

    async def stream(self) -> AsyncIterator[EngineChunk]:
        while True:
            for chunk in self.chunks:
                await asyncio.sleep(0)
                yield chunk


@pytest.mark.parametrize("is_raw", [True, False])
async def test_a_disconnecting_client_closes_the_filter(is_raw: bool) -> None:
    trace = make_trace()
    endless = _EndlessEngine(chunks_of("b", stop=None))

    async with filter(
        endless.stream(), make_admitted(is_raw=is_raw), make_prompt(), trace
    ) as texts:
        async for _ in texts:
            break

    with pytest.raises(StopAsyncIteration):
        await anext(texts)
    assert trace.finish_reason is None


@pytest.mark.parametrize(
    ("fields", "outputs", "reason"),
    [
        ({}, ["b"], ""),
        ({"is_single_line": True}, ["b\n", "c"], FilterReason.LINE_END),
        (
            {"prefix": "def f():\n    ", "mode": Mode.BLOCK},
            ["a()\n", "b()"],
            FilterReason.BLOCK_END,
        ),
        ({}, ["b\n", "\n", "c"], FilterReason.BLANK_LINE),
        ({"prefix": "", "suffix": "\nc()\n"}, ["b\n", "c()\n", "d"], FilterReason.REPEATS_SUFFIX),
        ({"prefix": "", "mode": Mode.BLOCK}, ["b\nb\nb\n", "c"], FilterReason.REPETITION),
        ({}, ["b\ufffd", "c"], FilterReason.INCOMPLETE_CHARACTER),
        ({}, ["  ", "\n"], FilterReason.BLANK),
        ({"prefix": ""}, ["b\nc = )\n", "d = ]"], FilterReason.SYNTAX),
        ({"prefix": ""}, ["b\n", "password = 'hunter2-and-more'\n", "c"], FilterReason.SECRET),
    ],
)
async def test_the_filter_reason_is_recorded(
    fields: dict[str, Any], outputs: list[str], reason: str
) -> None:
    trace = make_trace()

    await _run_filter(FakeEngine(chunks_of(*outputs)), trace, **fields)

    assert trace.filter_reason == reason


async def test_a_line_that_breaks_the_syntax_is_withheld() -> None:
    trace = make_trace()

    await _run_filter(FakeEngine(chunks_of("f(b", "))")), trace)

    assert _reasons(trace) == (FinishReason.FILTERED, FilterReason.SYNTAX)


async def test_a_variant_may_disable_the_parser() -> None:
    trace, variant = make_trace(), Variant(name="a/b", filter="plain")

    texts = await _run_filter(FakeEngine(chunks_of("f(b", "))")), trace, variant=variant)

    assert ("".join(texts), trace.finish_reason) == ("f(b))", FinishReason.STOP)


async def test_a_language_without_a_grammar_is_not_parsed() -> None:
    trace = make_trace()

    await _run_filter(FakeEngine(chunks_of("f(b))")), trace, language="kotlin")

    assert trace.finish_reason is FinishReason.STOP


async def test_a_tenant_may_disable_the_secret_filter() -> None:
    trace, line = make_trace(), "a\npassword = 'hunter2-and-more'"
    policy = make_policy(has_secret_filter=False)

    texts = await _run_filter(
        FakeEngine(chunks_of(line)), trace, principal=make_principal(policy=policy), prefix=""
    )

    assert "".join(texts) == line


@pytest.mark.parametrize("is_raw", [False, True])
async def test_a_secret_far_before_the_cursor_is_ignored(is_raw: bool) -> None:
    before = "run(key='ghp_" + "a1B2" * 9 + "', " + "x=1, " * 60
    engine = FakeEngine(chunks_of("y=2"))

    texts = await _run_filter(engine, make_trace(), prefix=before, is_raw=is_raw)

    assert texts == ["y=2"]


async def test_a_long_line_is_not_a_secret() -> None:
    trace, output = make_trace(), "1, " * 1_000 + "1]"

    texts = await _run_filter(FakeEngine(chunks_of(output)), trace, prefix="x = [", mode=Mode.FIM)

    assert ("".join(texts), trace.finish_reason) == (output, FinishReason.STOP)


async def test_truncating_a_broken_end_ends_the_engine_request() -> None:
    broken = [f"    {number} = ]\n" for number in range(100)]
    engine = FakeEngine(chunks_of("if b:\n", *broken), hangs=True)

    await _run_filter(engine, make_trace(), prefix="", mode=Mode.BLOCK)

    assert engine.num_open == 0
    assert engine.num_yielded < 20  # of 101 chunks


async def test_a_chat_is_unchanged() -> None:
    texts = await _run_filter(
        FakeEngine(chunks_of("  a)", "\n\n")), make_trace(), messages=_MESSAGES, mode=Mode.CHAT
    )

    assert "".join(texts) == "  a)\n\n"


_MESSAGES = (ChatMessage("user", "Why?"),)
# Requests whose text is forwarded without truncation.
_VERBATIM: list[dict[str, Any]] = [
    {"is_raw": True, "prefix": "# aws\n"},
    {"messages": _MESSAGES, "mode": Mode.CHAT, "prefix": ""},
]
_AWS_KEY = "AKIA" + "Z7QK3M5X9W2P4R8T"
# 400 characters, so 400 chunks if each character is a chunk.
_LONG = "".join(f"call_{number}(argument_{number})\n" for number in range(20))


class _AllPublic:
    """An index in which all text is public code."""

    def contains(self, _hashed: int) -> bool:
        return True


@pytest.mark.parametrize("fields", _VERBATIM)
async def test_a_secret_is_withheld_from_raw_prompts_and_chats(fields: dict[str, Any]) -> None:
    engine = FakeEngine(chunks_of("key = '", _AWS_KEY[:9], _AWS_KEY[9:], "'\n", "more"), hangs=True)
    trace = make_trace()

    texts = await _run_filter(engine, trace, **fields)

    assert _AWS_KEY not in "".join(texts)
    assert _reasons(trace) == (FinishReason.FILTERED, FilterReason.SECRET)
    assert engine.num_open == 0


@pytest.mark.parametrize("fields", _VERBATIM)
async def test_a_secret_on_a_later_line_ends_raw_prompts_and_chats(
    fields: dict[str, Any],
) -> None:
    trace, outputs = make_trace(), ("a\n", " \n", "key = '", _AWS_KEY, "'\nmore\n")

    texts = await _run_filter(FakeEngine(chunks_of(*outputs)), trace, **fields)

    assert "".join(texts).startswith("a\n \n")
    assert _AWS_KEY not in "".join(texts)
    assert _reasons(trace) == (FinishReason.FILTERED, FilterReason.SECRET)


@pytest.mark.parametrize("fields", _VERBATIM)
async def test_public_code_is_withheld_from_raw_prompts_and_chats(fields: dict[str, Any]) -> None:
    engine, trace = FakeEngine(chunks_of(*_LONG), hangs=True), make_trace()
    principal = make_principal(policy=make_policy(has_public_code_filter=True))

    await _run_filter(engine, trace, principal=principal, public_code=_AllPublic(), **fields)

    assert _reasons(trace) == (FinishReason.FILTERED, FilterReason.PUBLIC_CODE)
    assert engine.num_open == 0
    assert engine.num_yielded < 200  # of 400 chunks


@pytest.mark.parametrize("fields", _VERBATIM)
@pytest.mark.parametrize("has_filters", [True, False])
async def test_harmless_raw_prompts_and_chats_are_unchanged(
    fields: dict[str, Any], has_filters: bool
) -> None:
    policy = make_policy(has_secret_filter=has_filters, has_public_code_filter=has_filters)
    outputs = (
        "\n\n",
        "  a = some_function_name",
        "(1234567890123)",
        "\r\n\t",
        "\n",
        "b }}) ",
        "\n \n",
    )
    trace = make_trace()

    texts = await _run_filter(
        FakeEngine(chunks_of(*outputs)), trace, principal=make_principal(policy=policy), **fields
    )

    assert ("".join(texts), trace.finish_reason) == ("".join(outputs), FinishReason.STOP)


@pytest.mark.parametrize("name", [None, *FILTERS])
def test_known_filters_are_accepted(name: str | None) -> None:
    check_filters([Variant(name="a/b", filter=name)])


def test_an_unknown_filter_is_rejected_at_the_start() -> None:
    with pytest.raises(BadSetting, match="a/b: the filter is 'sintax'"):
        check_filters([Variant(name="a/b", filter="sintax")])


async def test_public_code_is_withheld_and_ends_the_engine_request() -> None:
    engine, trace = FakeEngine(chunks_of(*_LONG), hangs=True), make_trace()
    principal = make_principal(policy=make_policy(has_public_code_filter=True))

    await _run_filter(
        engine, trace, principal=principal, prefix="", mode=Mode.BLOCK, public_code=_AllPublic()
    )

    assert _reasons(trace) == (FinishReason.FILTERED, FilterReason.PUBLIC_CODE)
    assert engine.num_open == 0
    assert engine.num_yielded < 200  # of 400 chunks


async def test_public_code_is_not_checked_without_the_policy() -> None:
    trace = make_trace()

    await _run_filter(
        FakeEngine(chunks_of(_LONG)), trace, prefix="", mode=Mode.BLOCK, public_code=_AllPublic()
    )

    assert trace.finish_reason is FinishReason.STOP


async def test_a_missing_public_code_index_is_logged_once() -> None:
    principal = make_principal(tenant_id=GLOBEX, policy=make_policy(has_public_code_filter=True))

    with capture_logs() as logs:
        for _ in range(2):
            await _run_filter(FakeEngine(chunks_of("b")), make_trace(), principal=principal)

    assert [entry["event"] for entry in logs] == ["filter.no_public_code_index"]
