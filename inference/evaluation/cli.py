"""`manage.py evaluate`: scores the completions of one or two pools and prints a JSON report."""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from caret.foundation.clock import SystemClock
from caret.foundation.environment import BadSetting, env_text
from caret.foundation.home_dir import find_home_folder
from inference.context.prompt.prompt_writer import PromptWriter
from inference.context.tokenization.tokenizer import load_tokenizer
from inference.evaluation.exam_reader import read_exam
from inference.evaluation.report import TaskResult, compare, judge, summarize
from inference.evaluation.request_completions import Subject, TaskCompletion, request_completions
from inference.evaluation.sandbox import SandboxLimits, has_sandbox, program_of, run_program
from inference.evaluation.task import Task
from inference.evaluation.task_generator import generate_tasks
from inference.pools.pool_config import PoolConfig, read_pool_config
from inference.pools.vllm.engine import VllmEngine
from inference.pools.vllm.http_client import HttpClient

INFILLING: Final = "infilling"
_MAX_STALL_S: Final = 60.0  # a connection to an engine fails if no data comes for this long
_TASKS_PER_PROGRESS_LINE: Final = 20


def main(argv: list[str]) -> int:
    """Print the report to stdout, and return the exit status. Raises BadSetting."""
    options = _make_parser().parse_args(argv)
    pools = read_pool_config(
        Path(env_text("CARET_POOLS_FILE", str(find_home_folder() / "pools.toml")))
    )
    subjects = [make_subject(pools, name) for name in options.pool]
    tasks = _read_tasks(options)
    completions_by_pool = asyncio.run(_evaluate(subjects, tasks))
    results = [_judge_all(completions) for completions in completions_by_pool]
    models = [subject.pool.model for subject in subjects]
    report = make_report(options.pool, results, suite=options.suite, models=models)
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
    return 0


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="manage.py evaluate", description=__doc__)
    parser.add_argument(
        "--pool",
        action="append",
        required=True,
        metavar="NAME[:LAYOUT]",
        help="a pool of the pools file, optionally with another layout; give two to compare them",
    )
    parser.add_argument(
        "--suite",
        default=INFILLING,
        help="infilling (the default): tasks from --repository; or a file (.jsonl or .jsonl.gz) in"
        " the format of HumanEval-infilling, whose tests run in a sandbox",
    )
    parser.add_argument("--repository", type=Path, help="a folder with your own code")
    parser.add_argument("--tasks", type=int, default=200, help="number of tasks (default: 200)")
    parser.add_argument(
        "--seed", type=int, default=1, help="seed for selecting the tasks (default: 1)"
    )
    return parser


def make_subject(pools: PoolConfig, argument: str) -> Subject:
    """Return the pool and its prompt writer for the argument `NAME` or `NAME:LAYOUT`.

    Raises BadSetting if there is no such pool.
    """
    name, _, layout = argument.partition(":")
    pool = pools.by_name.get(name)
    if pool is None:
        pool_names = ", ".join(pools.by_name)
        raise BadSetting(f"--pool: there is no pool {name!r}; the pools file has {pool_names}.")
    options = replace(pool.prompt_options, layout=layout) if layout else pool.prompt_options
    writer = PromptWriter(
        load_tokenizer(pool.tokenizer),
        model=pool.model,
        max_context_tokens=pool.max_context_tokens,
        clock=SystemClock(),
        options=options,
    )
    return Subject(pool, writer)


def _read_tasks(options: argparse.Namespace) -> list[Task]:
    """Check the options, and return the tasks of the suite. Raises BadSetting."""
    if len(options.pool) > 2:
        raise BadSetting("--pool: give one pool, or two to compare them.")
    if options.tasks < 1:
        raise BadSetting("--tasks must be at least 1.")
    if options.suite != INFILLING:
        tasks = read_exam(Path(options.suite))[: options.tasks]
        if any(task.unit_test for task in tasks) and not has_sandbox():
            raise BadSetting(
                "--suite: the tests of this file need Linux 6.2 or later with Landlock, on x86_64"
                " or aarch64, to confine their code."
            )
        return tasks
    if options.repository is None or not options.repository.is_dir():
        raise BadSetting("--repository: the suite infilling needs a folder with code.")
    tasks = generate_tasks(options.repository, num_tasks=options.tasks, seed=options.seed)
    if not tasks:
        raise BadSetting(f"--repository: {options.repository} has no source files to use.")
    return tasks


async def _evaluate(
    subjects: Sequence[Subject], tasks: Sequence[Task]
) -> list[list[TaskCompletion]]:
    async with HttpClient(max_stall_s=_MAX_STALL_S) as client:
        engine = VllmEngine(client)
        return [
            await request_completions(
                engine,
                subject,
                tasks,
                report_progress=lambda done: _report_progress(done, len(tasks)),
            )
            for subject in subjects
        ]


def _report_progress(num_done: int, num_tasks: int) -> None:
    if num_done % _TASKS_PER_PROGRESS_LINE == 0:
        sys.stderr.write(f"{num_done} of {num_tasks} tasks\n")


def _judge_all(completions: Sequence[TaskCompletion]) -> list[TaskResult]:
    """Score the completions. If a task has a test, run the test."""
    limits = SandboxLimits()
    return [
        judge(
            completion,
            None
            if completion.task.unit_test is None
            else run_program(program_of(completion.task, completion.text), limits),
        )
        for completion in completions
    ]


def make_report(
    names: Sequence[str],
    results: Sequence[Sequence[TaskResult]],
    *,
    suite: str,
    models: Sequence[str],
) -> dict[str, Any]:
    """Return the report of one pool or two.

    `names`, `results` and `models` have an element for each pool, in the same order. Reports are
    stored in the database without paths: if `suite` is a path, the report has only the file's name.
    """
    report: dict[str, Any] = {
        "suite": Path(suite).name,
        "pools": [
            {"pool": name, "model": model, **summarize(pool_results)}
            for name, model, pool_results in zip(names, models, results, strict=True)
        ],
    }
    if len(results) > 1:
        report["difference"] = compare(*results)
    return report
