"""filter in edit mode: it finds the edit in a model's answer, or the reason to propose none."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from caret.contracts.policy import Mode
from caret.contracts.usage import FinishReason
from inference.completion.edit import ProposedEdit, RecentEdit
from inference.completion.request_trace import RequestTrace
from inference.completion.variant import Variant
from inference.context.assemble import assemble
from inference.filtering.filter import filter
from inference.filtering.filter_reason import FilterReason
from inference.filtering.public_code_index import PublicCodeIndex
from inference.pools.engine import EngineStop
from tests.fakes.edits import CURSOR, REGION_END, REGION_START, make_answer
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.pools import make_engine_request
from tests.fakes.prompts import make_prompt_writer
from tests.fakes.requests import make_admitted, make_trace
from tests.fakes.tenants import make_policy, make_principal

WRITER = make_prompt_writer(edit_format="zeta")
PREFIX = "def area(width):\n    "
SUFFIX = "return w * 2\n"
# The editable region without changes, and with the edit EDIT.
LINES = "def area(width):\n    return w * 2\n"
WIDTH = "def area(width):\n    return width * 2\n"
EDIT = ProposedEdit(start_line=1, end_line=2, text="    return width * 2\n", num_changed_chars=4)
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


class EveryHash:
    """An index in which all text is public code."""

    def contains(self, hash_: int) -> bool:
        return True

    def __len__(self) -> int:
        return 1


async def _run(
    engine: FakeEngine | str, *, public_code: PublicCodeIndex | None = None, **fields: Any
) -> RequestTrace:
    """Filter the answer of the engine, and return the request trace."""
    if isinstance(engine, str):
        engine = FakeEngine(chunks_of(*engine))  # character by character
    fields = {"mode": Mode.EDIT, "prefix": PREFIX, "suffix": SUFFIX, "max_tokens": 512, **fields}
    admitted, trace = make_admitted(**fields), make_trace()
    prompt = assemble(WRITER, admitted)
    async with (
        engine.complete(make_engine_request()) as chunks,
        filter(chunks, admitted, prompt, trace, public_code=public_code) as texts,
    ):
        assert [text async for text in texts] == []
    return trace


def _ending(trace: RequestTrace) -> tuple[FinishReason | None, str, ProposedEdit | None]:
    return trace.finish_reason, trace.filter_reason, trace.edit


async def test_an_answer_becomes_an_edit() -> None:
    trace = await _run(make_answer(WIDTH))

    assert _ending(trace) == (FinishReason.STOP, "", EDIT)
    assert (trace.num_sent_chars, trace.num_sent_lines) == (4, 1)
    assert trace.first_token_ms is not None
    assert trace.is_syntax_checked


async def test_the_engine_is_stopped_at_the_end_of_the_region() -> None:
    engine = FakeEngine(chunks_of(make_answer(WIDTH), "more", stop=None), hangs=True)

    async with asyncio.timeout(5):
        trace = await _run(engine)

    assert trace.edit == EDIT
    assert (engine.num_yielded, engine.num_open) == (1, 0)


async def test_the_cursor_in_the_answer_is_no_part_of_the_text() -> None:
    trace = await _run(make_answer(f"def area(width):\n    return width{CURSOR} * 2\n"))

    assert trace.edit == EDIT


async def test_an_answer_that_changes_nothing_proposes_nothing() -> None:
    trace = await _run(make_answer(LINES))

    assert _ending(trace) == (FinishReason.STOP, FilterReason.NO_CHANGE, None)


@pytest.mark.parametrize(
    ("stop", "reason"),
    [(EngineStop.LENGTH, ""), (EngineStop.DISCONNECTED, FilterReason.ENGINE_DISCONNECTED)],
)
async def test_an_answer_that_breaks_off_proposes_nothing(stop: EngineStop, reason: str) -> None:
    engine = FakeEngine(chunks_of(f"{REGION_START}\n{WIDTH}", stop=stop))

    assert _ending(await _run(engine)) == (FinishReason.LENGTH, reason, None)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", FilterReason.UNFINISHED),
        (f"{REGION_START}\n{WIDTH}", FilterReason.UNFINISHED),
        ("I cannot help with that.", FilterReason.UNFINISHED),
        (make_answer(f"{WIDTH}{REGION_START}\nx"), FilterReason.MARKERS),
        (make_answer(f"{WIDTH}<|start_of_file|>\n"), FilterReason.MARKERS),
        (make_answer("def area(width):\n    return width * 2)\n"), FilterReason.SYNTAX),
        (make_answer(f"{WIDTH}\ntoken = '{TOKEN}'\n"), FilterReason.SECRET),
        (make_answer(f"{WIDTH}\npassword = 'hunter2-and-more'\n"), FilterReason.SECRET),
    ],
    ids=[
        *("nothing", "without an end", "prose", "region twice", "file marker", "syntax"),
        *("token", "password"),
    ],
)
async def test_an_incomplete_invalid_or_secret_edit_is_withheld(
    answer: str, reason: FilterReason
) -> None:
    assert _ending(await _run(answer)) == (FinishReason.FILTERED, reason, None)


async def test_a_file_that_is_broken_already_can_be_edited() -> None:
    fields: dict[str, Any] = {"prefix": "def area(width:\n    ", "suffix": "return w * 2\n"}

    trace = await _run(make_answer("def area(width:\n    return width * 2\n"), **fields)

    assert trace.edit == EDIT


async def test_an_experiment_without_the_parser_does_not_check_the_syntax() -> None:
    variant = Variant("plain", filter="plain")

    trace = await _run(make_answer("def area(width):\n    return width * 2)\n"), variant=variant)

    assert trace.edit is not None
    assert not trace.is_syntax_checked


async def test_secrets_are_allowed_by_a_policy_without_the_filter() -> None:
    principal = make_principal(policy=make_policy(has_secret_filter=False))

    trace = await _run(make_answer(f"{WIDTH}token = '{TOKEN}'\n"), principal=principal)

    assert trace.edit is not None


@pytest.mark.parametrize("has_filter", [True, False])
async def test_public_code_is_withheld_if_the_policy_says_so(has_filter: bool) -> None:
    principal = make_principal(policy=make_policy(has_public_code_filter=has_filter))
    copied = "".join(f"    value_{n} = read_value(path, {n})\n" for n in range(8))

    trace = await _run(
        make_answer(f"def area(width):\n{copied}    return width * 2\n"),
        principal=principal,
        public_code=EveryHash(),
    )

    assert (trace.filter_reason == FilterReason.PUBLIC_CODE) is has_filter
    assert (trace.edit is None) is has_filter


@pytest.mark.parametrize(
    ("answer", "is_withheld"),
    [
        ("token = 'REDACTED'\nb = 2\n", False),
        ("token = ''\nb = 1\n", True),
        ("b = 1\ntoken = 'REDACTED'\n", True),
        ("b = 1\n", True),
        ("token = 'REDACTED'\nb = 1\nold_token = 'REDACTED'\n", True),
    ],
    ids=["another line", "changed", "moved", "deleted", "copied"],
)
async def test_a_line_whose_secret_the_model_did_not_see_stays(
    answer: str, is_withheld: bool
) -> None:
    principal = make_principal(policy=make_policy(has_secret_filter=False))
    fields: dict[str, Any] = {
        "prefix": f"token = '{TOKEN}'\nb = ",
        "suffix": "1\n",
        "principal": principal,
    }

    trace = await _run(make_answer(answer), **fields)

    assert trace.edit == (None if is_withheld else ProposedEdit(1, 2, "b = 2\n", 1))
    assert trace.filter_reason == (FilterReason.SECRET if is_withheld else "")


# The user typed the line "return w * 2", or changed "width" to "w * 2" in it.
TYPED = (RecentEdit("a.py", 1, "    \n", "    return w * 2\n"),)
RENAMED = (RecentEdit("a.py", 1, "    return width\n", "    return w * 2\n"),)


@pytest.mark.parametrize(
    ("answer", "edits"),
    [
        ("def area(width):\n", TYPED),
        ("def area(width):\n    return w\n", TYPED),
        ("def area(width):\n    return width\n", RENAMED),
    ],
    ids=["typed line", "typed words", "undo"],
)
async def test_an_edit_that_undoes_typing_is_withheld(
    answer: str, edits: tuple[RecentEdit, ...]
) -> None:
    trace = await _run(make_answer(answer), recent_edits=edits)

    assert _ending(trace) == (FinishReason.FILTERED, FilterReason.UNDOES_TYPING, None)


@pytest.mark.parametrize(
    ("answer", "edits"),
    [
        ("def area(width):\n    return width * 2\n", TYPED),
        ("def area(width):\n    return w\n", ()),
        ("def area(width):\n    return w\n", (replace(TYPED[0], path="b.py"),)),
        ("def area():\n    return w * 2\n", TYPED),
    ],
    ids=["continued", "nothing was typed", "typed in another file", "other text"],
)
async def test_other_edits_after_typing_are_proposed(
    answer: str, edits: tuple[RecentEdit, ...]
) -> None:
    assert (await _run(make_answer(answer), recent_edits=edits)).edit is not None


@pytest.mark.parametrize("typed", ["    return w * 2\n", "\n"])
async def test_a_blank_line_can_be_deleted_unless_the_user_typed_it(typed: str) -> None:
    edits = (replace(TYPED[0], added=typed),)
    fields: dict[str, Any] = {"prefix": "def area(width):\n\n    ", "recent_edits": edits}

    trace = await _run(make_answer(LINES), **fields)

    assert (trace.edit is None) == (typed == "\n")


async def test_the_original_of_a_pasted_line_can_be_deleted() -> None:
    pasted = RecentEdit("a.py", 5, "", "import os\n")
    fields: dict[str, Any] = {"prefix": "import os\nx = 1\n\n\n\nimport os", "suffix": "\n"}

    trace = await _run(make_answer("x = 1\n\n\n\nimport os\n"), recent_edits=(pasted,), **fields)

    assert trace.edit == ProposedEdit(0, 1, "", num_changed_chars=len("import os"))


async def test_the_rest_of_the_line_after_the_region_end_is_ignored() -> None:
    trace = await _run(f"{REGION_START}\n{WIDTH}\n{REGION_END}{REGION_START} and so on")

    assert trace.edit == EDIT
