"""Evaluation tasks that are cut out of the files of a repository."""

from collections import Counter
from pathlib import Path

import pytest

from inference.evaluation.task import TaskKind
from inference.evaluation.task_generator import generate_tasks

TEXT = "".join(f"def part_{number}(value):\n    return value + {number}\n\n" for number in range(9))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name in ("a.py", "b.py", "lib/c.py"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(TEXT)
    return tmp_path


def test_tasks_of_all_kinds_are_cut_out_of_all_files(repository: Path) -> None:
    tasks = generate_tasks(repository, num_tasks=12, seed=1)

    assert len(tasks) == 12
    assert all(task.prefix + task.answer + task.suffix == TEXT for task in tasks)
    assert {task.path for task in tasks} == {"a.py", "b.py", "lib/c.py"}
    # The kinds take turns, so each of the three kinds has four tasks.
    assert Counter(task.kind for task in tasks) == dict.fromkeys(TaskKind, 4)


def test_an_answer_that_is_no_random_span_ends_at_the_end_of_a_line(repository: Path) -> None:
    for task in generate_tasks(repository, num_tasks=30, seed=2):
        if task.kind is not TaskKind.RANDOM_SPAN:
            assert task.suffix == "" or task.suffix.startswith("\n")
        if task.kind is TaskKind.SINGLE_LINE:
            assert "\n" not in task.answer


def test_the_same_seed_gives_the_same_tasks(repository: Path) -> None:
    tasks, same_seed_tasks, other_seed_tasks = (
        generate_tasks(repository, num_tasks=12, seed=seed) for seed in (1, 1, 2)
    )

    assert tasks == same_seed_tasks
    assert tasks != other_seed_tasks


def test_unsuitable_files_are_skipped(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "hook.py").write_text(TEXT)
    (tmp_path / "short.py").write_text("x = 1\n")
    (tmp_path / "large.py").write_text(TEXT * 1_000)
    (tmp_path / "notes.txt").write_text(TEXT)
    (tmp_path / "binary.py").write_bytes(b"\xff\n" * 20)
    (tmp_path / "link.py").symlink_to("/etc/passwd")

    assert generate_tasks(tmp_path, num_tasks=5, seed=1) == []
