"""Reads an exam: a public file of HumanEval-infilling with a task on each line.

The lines are JSON. The file is compressed with gzip if its name ends in `.gz`. Each line has
`task_id`, `prompt`, `suffix` and `canonical_solution`. `entry_point` and `test` are optional: only
tasks with both of them have a score `pass_at_1`.
"""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import msgspec

from caret.foundation.environment import BadSetting
from inference.evaluation.task import Task, TaskKind, UnitTest

_MAX_LINE_BYTES: Final = 1024 * 1024
_MAX_LINES: Final = 20_000


class _ExamLine(msgspec.Struct):
    task_id: str
    prompt: str
    suffix: str
    canonical_solution: str
    entry_point: str = ""
    test: str = ""


def read_exam(path: Path) -> list[Task]:
    """Return the tasks, in the order of the file.

    Raises BadSetting. Its message names the file, and the line if a line is invalid.
    """
    try:
        with _open(path) as file:
            tasks = list(_read_tasks(file, path))
    except (OSError, EOFError, zlib.error) as error:
        raise BadSetting(f"--suite: {path} cannot be read: {error}.") from error
    if not tasks:
        raise BadSetting(f"--suite: {path} has no tasks.")
    return tasks


def _open(path: Path) -> IO[bytes] | gzip.GzipFile:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def _read_tasks(file: IO[bytes] | gzip.GzipFile, path: Path) -> Iterator[Task]:
    decoder = msgspec.json.Decoder(_ExamLine)
    number = 0
    while line := file.readline(_MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > _MAX_LINE_BYTES or number > _MAX_LINES:
            raise BadSetting(
                f"--suite: {path}, line {number}: a file can have at most {_MAX_LINES:,} lines, of"
                " at most 1 MB each."
            )
        if line.strip():
            try:
                yield _to_task(decoder.decode(line))
            except (msgspec.MsgspecError, UnicodeError) as error:
                raise BadSetting(f"--suite: {path}, line {number}: {error}.") from error


def _to_task(line: _ExamLine) -> Task:
    has_test = bool(line.test and line.entry_point)
    return Task(
        name=line.task_id,
        kind=_kind_of(line),
        path="solution.py",
        language="python",
        prefix=line.prompt,
        suffix=line.suffix,
        answer=line.canonical_solution,
        unit_test=UnitTest(line.test, line.entry_point) if has_test else None,
    )


def _kind_of(line: _ExamLine) -> TaskKind:
    """Return the kind that the task's ID names, or else a guess from the length of the answer."""
    for kind in TaskKind:  # an ID such as `SingleLineInfilling/HumanEval/0/L0`
        if kind.value.replace("_", "") in line.task_id.lower():
            return kind
    is_long = "\n" in line.canonical_solution.strip("\n")
    return TaskKind.MULTI_LINE if is_long else TaskKind.SINGLE_LINE
