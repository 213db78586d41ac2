"""Completions that an evaluation requests from the engines of a pool."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from caret.foundation.clock import SystemClock
from caret.foundation.environment import BadSetting
from caret.local.engines.engine import DEMO_MODEL
from inference.context.prompt.prompt_writer import PromptWriter
from inference.context.tokenization.tokenizer import load_tokenizer
from inference.errors import EngineError
from inference.evaluation.request_completions import (
    NUM_AT_ONCE,
    Subject,
    TaskCompletion,
    request_completions,
)
from inference.evaluation.task import Task
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.evaluation import TASK
from tests.fakes.pools import make_pool

URLS = ("http://engine-1:8000", "http://engine-2:8000")


async def request_from_pool(
    engine: FakeEngine, tasks: Sequence[Task], *urls: str
) -> list[TaskCompletion]:
    """Request a completion of each task from a pool with replicas at these URLs.

    Also check that the progress is reported after each task.
    """
    writer = PromptWriter(
        load_tokenizer(str(DEMO_MODEL)),
        model="demo",
        max_context_tokens=4096,
        clock=SystemClock(),
    )
    reported_progress: list[int] = []
    pool = make_pool(*urls)
    completions = await request_completions(
        engine, Subject(pool, writer), tasks, report_progress=reported_progress.append
    )
    assert reported_progress == list(range(1, len(tasks) + 1))
    return completions


async def test_a_completion_is_truncated_at_the_end_of_its_line_as_for_users() -> None:
    engine = FakeEngine(chunks_of("width", " * height", "\nprint("))

    (completion,) = await request_from_pool(engine, [TASK])

    assert completion.text == "width * height"
    assert completion.first_text_ms is not None
    assert completion.first_text_ms <= completion.total_ms


async def test_tasks_are_spread_over_replicas_with_one_cache_salt() -> None:
    engine = FakeEngine(chunks_of("width"))

    await request_from_pool(engine, [TASK] * 10, *URLS)

    assert {request.replica.url for request in engine.requests} == set(URLS)
    assert len({request.salt for request in engine.requests}) == 1
    assert engine.max_open <= NUM_AT_ONCE


async def test_a_failed_task_counts_as_an_error() -> None:
    failing = {URLS[0]: EngineError("engine_busy", "The engine is full.")}
    engine = FakeEngine(chunks_of("width"), failing=failing)

    first, second = await request_from_pool(engine, [TASK, TASK], *URLS)

    assert (first.error, first.text) == ("engine_busy", "")
    assert (second.error, second.text) == ("", "width")


async def test_the_error_names_a_pool_whose_completions_all_fail() -> None:
    engine = FakeEngine(error_at_start=EngineError("engine_unavailable", "No engine."))

    with pytest.raises(BadSetting, match="demo-fast answered none of 2 tasks: engine_unavailable"):
        await request_from_pool(engine, [TASK, TASK])


async def test_the_error_names_a_pool_without_replicas() -> None:
    engine = FakeEngine()
    pool = replace(make_pool(), replicas=())
    subject = Subject(pool, writer=None)  # type: ignore[arg-type]  # no prompt is written

    with pytest.raises(BadSetting, match="demo-fast has no replicas"):
        await request_completions(engine, subject, [TASK], report_progress=lambda _: None)
