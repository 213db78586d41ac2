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
from tests.fakes.requests import make_account, make_admitted, make_prompt
from tests.fakes.tenants import GLOBEX, make_policy, make_principal


async def _filtered(
    engine: FakeEngine,
    account: RequestTrace,
    *,
    is_single_line: bool = False,
    public_code: PublicCodeIndex | None = None,
    healed: str = "",
    **fields: Any,
) -> list[str]:
    prompt = replace(make_prompt(is_single_line=is_single_line), healed_prefix=healed)
    admitted = make_admitted(**fields)
    async with (
        engine.complete(make_engine_request()) as chunks,
        filter(chunks, admitted, prompt, account, public_code=public_code) as texts,
    ):
        return [text async for text in texts]


def _ending(account: RequestTrace) -> tuple[FinishReason | None, str]:
    return account.finish_reason, account.filter_reason


@pytest.mark.parametrize(
    ("stop", "finish"),
    [(EngineStop.STOP, FinishReason.STOP), (EngineStop.LENGTH, FinishReason.LENGTH)],
)
@pytest.mark.parametrize("is_raw", [False, True])
async def test_the_engines_end_is_the_completions(
    stop: EngineStop, finish: FinishReason, is_raw: bool
) -> None:
    account = make_account()

    texts = await _filtered(FakeEngine(chunks_of("b", "c", stop=stop)), account, is_raw=is_raw)

    assert ("".join(texts), account.finish_reason) == ("bc", finish)


async def test_of_a_word_that_was_withheld_only_the_rest_is_shown() -> None:
    engine, account = FakeEngine(chunks_of("re", "ad(path)")), make_account()

    texts = await _filtered(engine, account, prefix="self.re", healed="re")

    assert ("".join(texts), account.finish_reason) == ("ad(path)", FinishReason.STOP)


async def test_another_word_than_the_one_begun_is_withheld_and_leaves_the_engine() -> None:
    engine, account = FakeEngine(chunks_of("wr", "ite", "(path)"), hangs=True), make_account()

    texts = await _filtered(engine, account, prefix="self.re", healed="re")

    assert (texts, account.finish_reason) == ([], FinishReason.FILTERED)
    assert account.filter_reason == FilterReason.HEALING_MISMATCH


async def test_no_text_is_ever_empty() -> None:
    texts = await _filtered(FakeEngine(chunks_of("", "b", "", "  ", "c")), make_account())

    assert all(texts)


async def test_a_cut_ends_with_stop_and_leaves_the_engine() -> None:
    engine, account = FakeEngine(chunks_of("b\n", "c = d", "e", "f"), hangs=True), make_account()

    texts = await _filtered(engine, account, is_single_line=True)

    assert ("".join(texts), account.finish_reason) == ("b", FinishReason.STOP)
    assert (engine.num_open, engine.num_said) == (0, 1)


async def test_an_engine_that_has_stopped_is_heard_to_its_end() -> None:
    told = EngineChunk(text="", generated_tokens=1, stop=EngineStop.STOP, cached_tokens=16)
    engine = FakeEngine([*chunks_of("b\n"), told])

    await _filtered(engine, make_account(), is_single_line=True)

    assert engine.num_said == 2


async def test_text_of_which_nothing_is_shown_is_filtered() -> None:
    account = make_account()

    texts = await _filtered(FakeEngine(chunks_of("  ", "\n")), account, is_single_line=True)

    assert (texts, account.finish_reason) == ([], FinishReason.FILTERED)


async def test_an_engine_that_writes_nothing_has_stopped() -> None:
    account = make_account()

    texts = await _filtered(FakeEngine(chunks_of("")), account)

    assert (texts, account.finish_reason) == ([], FinishReason.STOP)


async def test_a_raw_prompts_text_passes_as_it_is() -> None:
    written = ("  ", "\n\n", "a\na\na\n", "a ")

    texts = await _filtered(FakeEngine(chunks_of(*written)), make_account(), is_raw=True)

    assert texts == list(written)


async def test_what_was_held_back_is_shown_at_the_end() -> None:
    engine = FakeEngine(chunks_of("g(", "a)"))

    texts = await _filtered(engine, make_account(), prefix="f(", suffix=")\n", mode=Mode.FIM)

    assert "".join(texts) == "g(a)"


async def test_an_engines_failure_goes_on() -> None:
    account = make_account()

    with pytest.raises(OSError, match="planted"):
        await _filtered(FakeEngine(chunks_of("b", stop=None), error=OSError("planted")), account)

    assert account.finish_reason is None


class _Watched:
    """Yields chunks without end, and records whether it was closed."""

    def __init__(self, chunks: Sequence[EngineChunk]) -> None:
        self.chunks = chunks
        self.is_closed = False

    async def say(self) -> AsyncIterator[EngineChunk]:
        try:
            while True:
                for chunk in self.chunks:
                    await asyncio.sleep(0)
                    yield chunk
        finally:
            self.is_closed = True


@pytest.mark.parametrize("is_raw", [True, False])
async def test_a_client_that_leaves_closes_the_filter(is_raw: bool) -> None:
    account = make_account()
    watched = _Watched(chunks_of("b", stop=None))

    async with filter(watched.say(), make_admitted(is_raw=is_raw), make_prompt(), account) as texts:
        async for _ in texts:
            break

    with pytest.raises(StopAsyncIteration):
        await anext(texts)
    assert account.finish_reason is None


@pytest.mark.parametrize(
    ("fields", "written", "reason"),
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
async def test_the_reason_of_a_cut_is_in_the_account(
    fields: dict[str, Any], written: list[str], reason: str
) -> None:
    account = make_account()

    await _filtered(FakeEngine(chunks_of(*written)), account, **fields)

    assert account.filter_reason == reason


async def test_a_line_that_breaks_the_file_is_withheld() -> None:
    account = make_account()

    await _filtered(FakeEngine(chunks_of("f(b", "))")), account)

    assert _ending(account) == (FinishReason.FILTERED, FilterReason.SYNTAX)


async def test_a_variant_may_do_without_the_parser() -> None:
    account, variant = make_account(), Variant(name="a/b", filter="plain")

    texts = await _filtered(FakeEngine(chunks_of("f(b", "))")), account, variant=variant)

    assert ("".join(texts), account.finish_reason) == ("f(b))", FinishReason.STOP)


async def test_a_language_without_a_grammar_is_not_parsed() -> None:
    account = make_account()

    await _filtered(FakeEngine(chunks_of("f(b))")), account, language="kotlin")

    assert account.finish_reason is FinishReason.STOP


async def test_a_tenant_may_have_credentials_written() -> None:
    account, line = make_account(), "a\npassword = 'hunter2-and-more'"
    policy = make_policy(has_secret_filter=False)

    texts = await _filtered(
        FakeEngine(chunks_of(line)), account, principal=make_principal(policy=policy), prefix=""
    )

    assert "".join(texts) == line


@pytest.mark.parametrize("is_raw", [False, True])
async def test_a_credential_far_before_the_cursor_is_not_the_completions(is_raw: bool) -> None:
    before = "run(key='ghp_" + "a1B2" * 9 + "', " + "x=1, " * 60
    engine = FakeEngine(chunks_of("y=2"))

    texts = await _filtered(engine, make_account(), prefix=before, is_raw=is_raw)

    assert texts == ["y=2"]


async def test_a_long_line_is_no_secret() -> None:
    account, written = make_account(), "1, " * 1_000 + "1]"

    texts = await _filtered(FakeEngine(chunks_of(written)), account, prefix="x = [", mode=Mode.FIM)

    assert ("".join(texts), account.finish_reason) == (written, FinishReason.STOP)


async def test_the_cut_of_a_broken_end_leaves_the_engine() -> None:
    broken = [f"    {number} = ]\n" for number in range(100)]
    engine = FakeEngine(chunks_of("if b:\n", *broken), hangs=True)

    await _filtered(engine, make_account(), prefix="", mode=Mode.BLOCK)

    assert engine.num_open == 0
    assert engine.num_said < 20


async def test_a_chat_passes_as_it_is() -> None:
    messages = (ChatMessage("user", "Why?"),)

    texts = await _filtered(
        FakeEngine(chunks_of("  a)", "\n\n")), make_account(), messages=messages, mode=Mode.CHAT
    )

    assert "".join(texts) == "  a)\n\n"


_MESSAGES = (ChatMessage("user", "Why?"),)
_VERBATIM: list[dict[str, Any]] = [
    {"is_raw": True, "prefix": "# aws\n"},
    {"messages": _MESSAGES, "mode": Mode.CHAT, "prefix": ""},
]
_AWS = "AKIA" + "Z7QK3M5X9W2P4R8T"


@pytest.mark.parametrize("fields", _VERBATIM)
async def test_a_credential_is_withheld_from_raw_prompts_and_chats(fields: dict[str, Any]) -> None:
    engine = FakeEngine(chunks_of("key = '", _AWS[:9], _AWS[9:], "'\n", "more"), hangs=True)
    account = make_account()

    texts = await _filtered(engine, account, **fields)

    assert _AWS not in "".join(texts)
    assert _ending(account) == (FinishReason.FILTERED, FilterReason.SECRET)
    assert engine.num_open == 0


@pytest.mark.parametrize("fields", _VERBATIM)
async def test_a_credential_on_a_later_line_ends_raw_prompts_and_chats(
    fields: dict[str, Any],
) -> None:
    account, written = make_account(), ("a\n", " \n", "key = '", _AWS, "'\nmore\n")

    texts = await _filtered(FakeEngine(chunks_of(*written)), account, **fields)

    assert "".join(texts).startswith("a\n \n")
    assert _AWS not in "".join(texts)
    assert _ending(account) == (FinishReason.FILTERED, FilterReason.SECRET)


@pytest.mark.parametrize("fields", _VERBATIM)
async def test_public_code_is_withheld_from_raw_prompts_and_chats(fields: dict[str, Any]) -> None:
    engine, account = FakeEngine(chunks_of(*_LONG), hangs=True), make_account()
    principal = make_principal(policy=make_policy(has_public_code_filter=True))

    await _filtered(engine, account, principal=principal, public_code=_AllPublic(), **fields)

    assert _ending(account) == (FinishReason.FILTERED, FilterReason.PUBLIC_CODE)
    assert (engine.num_open, engine.num_said < 200) == (0, True)


@pytest.mark.parametrize("fields", _VERBATIM)
@pytest.mark.parametrize("withholds", [True, False])
async def test_what_nothing_is_withheld_of_passes_byte_for_byte(
    fields: dict[str, Any], withholds: bool
) -> None:
    policy = make_policy(has_secret_filter=withholds, has_public_code_filter=withholds)
    written = (
        "\n\n",
        "  a = some_function_name",
        "(1234567890123)",
        "\r\n\t",
        "\n",
        "b }}) ",
        "\n \n",
    )
    account = make_account()

    texts = await _filtered(
        FakeEngine(chunks_of(*written)), account, principal=make_principal(policy=policy), **fields
    )

    assert ("".join(texts), account.finish_reason) == ("".join(written), FinishReason.STOP)


@pytest.mark.parametrize("name", [None, *FILTERS])
def test_a_known_filter_may_be_tried(name: str | None) -> None:
    check_filters([Variant(name="a/b", filter=name)])


def test_an_unknown_filter_is_refused_at_start() -> None:
    with pytest.raises(BadSetting, match="a/b: the filter is 'sintax'"):
        check_filters([Variant(name="a/b", filter="sintax")])


class _AllPublic:
    def contains(self, _hashed: int) -> bool:
        return True


_LONG = "".join(f"call_{number}(argument_{number})\n" for number in range(20))


async def test_public_code_is_withheld_and_leaves_the_engine() -> None:
    engine, account = FakeEngine(chunks_of(*_LONG), hangs=True), make_account()
    principal = make_principal(policy=make_policy(has_public_code_filter=True))

    await _filtered(
        engine, account, principal=principal, prefix="", mode=Mode.BLOCK, public_code=_AllPublic()
    )

    assert _ending(account) == (FinishReason.FILTERED, FilterReason.PUBLIC_CODE)
    assert (engine.num_open, engine.num_said < 200) == (0, True)


async def test_a_tenant_that_has_not_asked_for_it_is_not_compared() -> None:
    account = make_account()

    await _filtered(
        FakeEngine(chunks_of(_LONG)), account, prefix="", mode=Mode.BLOCK, public_code=_AllPublic()
    )

    assert account.finish_reason is FinishReason.STOP


async def test_a_tenant_that_asks_for_it_in_vain_is_logged() -> None:
    principal = make_principal(tenant_id=GLOBEX, policy=make_policy(has_public_code_filter=True))

    with capture_logs() as logs:
        for _ in range(2):
            await _filtered(FakeEngine(chunks_of("b")), make_account(), principal=principal)

    assert [entry["event"] for entry in logs] == ["filter.no_public_code_index"]
