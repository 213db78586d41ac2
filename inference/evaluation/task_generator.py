"""Makes tasks from the operator's code. The same seed and files give the same tasks."""

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from caret.foundation.parsing.grammars import grammar_of
from inference.evaluation.task import Task, TaskKind

_MAX_FILES: Final = 5_000
_MAX_FILE_BYTES: Final = 200_000  # larger files are skipped: they are probably generated code
_MIN_LINES: Final = 8  # of a file
_MAX_TASKS_PER_FILE: Final = 12
_LINES_OF_ANSWER: Final = (2, 8)  # minimum, maximum; for the kind MULTI_LINE
_CHARS_OF_SPAN: Final = (4, 120)  # minimum, maximum; for the kind RANDOM_SPAN
_SKIPPED_FOLDERS: Final = frozenset({"node_modules", "__pycache__", "vendor"})


@dataclass(frozen=True, slots=True)
class _SourceFile:
    path: str
    language: str
    text: str


def generate_tasks(repository: Path, *, num_tasks: int, seed: int) -> list[Task]:
    """Return at most `num_tasks` tasks of all kinds, from as many files as possible.

    The list is empty if the repository has no usable files.
    """
    rng = random.Random(seed)
    files = list(_read_files(repository))
    rng.shuffle(files)
    tasks: list[Task] = []
    for _ in range(_MAX_TASKS_PER_FILE):
        for file in files:
            kind = list(TaskKind)[len(tasks) % len(TaskKind)]  # the kinds in turn
            task = _cut_task(file, kind, rng)
            if task is not None:
                tasks.append(task)
            if len(tasks) == num_tasks:
                return tasks
    return tasks


def _read_files(repository: Path) -> Iterator[_SourceFile]:
    num_files = 0
    for folder, folders, names in os.walk(repository):  # does not follow links to folders
        folders[:] = sorted(
            name for name in folders if name[0] != "." and name not in _SKIPPED_FOLDERS
        )
        for name in sorted(names):
            file = _read_file(Path(folder, name), repository)
            if file is not None:
                yield file
                num_files += 1
            if num_files == _MAX_FILES:
                return


def _read_file(path: Path, repository: Path) -> _SourceFile | None:
    """Return the file. None: it is a link, too large, too short, not text, or has no grammar."""
    grammar = grammar_of("", path.name)
    if grammar is None or path.is_symlink() or path.stat().st_size > _MAX_FILE_BYTES:
        return None
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError):
        return None
    if text.count("\n") < _MIN_LINES or "\0" in text:
        return None
    return _SourceFile(path.relative_to(repository).as_posix(), grammar.value, text)


def _cut_task(file: _SourceFile, kind: TaskKind, rng: random.Random) -> Task | None:
    """Return a task of this kind; None: the randomly chosen answer is blank."""
    if kind is TaskKind.RANDOM_SPAN:
        start = rng.randrange(len(file.text))
        end = min(len(file.text), start + rng.randint(*_CHARS_OF_SPAN))
    else:
        start, end = _cut_lines(file.text, kind, rng)
    answer = file.text[start:end]
    if not answer.strip():
        return None
    line_number = file.text.count("\n", 0, start) + 1
    return Task(
        name=f"{file.path}:{line_number}:{kind}",
        kind=kind,
        path=file.path,
        language=file.language,
        prefix=file.text[:start],
        suffix=file.text[end:],
        answer=answer,
    )


def _cut_lines(text: str, kind: TaskKind, rng: random.Random) -> tuple[int, int]:
    """Return the positions in `text` where a random answer starts and ends.

    The answer starts within a line, and ends with that line or a later one.
    """
    lines = text.splitlines(keepends=True)
    first = rng.randrange(len(lines))
    num_lines = 1 if kind is TaskKind.SINGLE_LINE else rng.randint(*_LINES_OF_ANSWER)
    line = lines[first]
    indent = len(line) - len(line.lstrip())
    # `min` and `max` matter only on blank lines, where the range would be empty without them.
    column = rng.randint(min(indent, len(line) - 1), max(indent, len(line.rstrip()) - 1))
    begin = sum(map(len, lines[:first]))
    answer_lines = "".join(lines[first : first + num_lines])
    return begin + column, begin + max(column, len(answer_lines.rstrip("\r\n")))
