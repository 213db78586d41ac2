"""Evaluation tasks that are read from a public file of fill-in-the-middle tasks."""

import gzip
import json
from pathlib import Path

import pytest

from caret.foundation.environment import BadSetting
from inference.evaluation.exam_reader import read_exam
from inference.evaluation.task import TaskKind, UnitTest

# A line with the fields of HumanEval-SingleLineInfilling.
LINE = {
    "task_id": "SingleLineInfilling/HumanEval/0/L0",
    "entry_point": "double",
    "prompt": "def double(x):\n",
    "suffix": "\n",
    "canonical_solution": "    return 2 * x",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
}


@pytest.mark.parametrize("name", ["exam.jsonl", "exam.jsonl.gz"])
def test_tasks_and_their_unit_tests_are_read_from_a_public_file(tmp_path: Path, name: str) -> None:
    lines = json.dumps(LINE) + "\n\n" + json.dumps(LINE | {"test": ""}) + "\n"
    data = lines.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)

    task_with_test, task_without_test = read_exam(tmp_path / name)

    assert task_with_test.kind is TaskKind.SINGLE_LINE
    assert task_with_test.answer == "    return 2 * x"
    assert task_with_test.unit_test == UnitTest(LINE["test"], "double")
    assert task_without_test.unit_test is None


@pytest.mark.parametrize(
    ("task_id", "kind"),
    [
        ("MultiLineInfilling/HumanEval/0/L0_L2", TaskKind.MULTI_LINE),
        ("RandomSpanInfilling/HumanEval/0/1", TaskKind.RANDOM_SPAN),
        ("ours/1", TaskKind.SINGLE_LINE),  # this ID names no kind; the answer has one line
    ],
)
def test_the_kind_is_read_from_the_task_id_or_else_from_the_answer(
    tmp_path: Path, task_id: str, kind: TaskKind
) -> None:
    (tmp_path / "exam.jsonl").write_text(json.dumps(LINE | {"task_id": task_id}))

    assert read_exam(tmp_path / "exam.jsonl")[0].kind is kind


BAD_LINES = {
    "not JSON": b"{",
    "a list": b"[]",
    "a missing field": json.dumps({"task_id": "1"}).encode(),
    "a number as the prompt": json.dumps(LINE | {"prompt": 1}).encode(),
    "not UTF-8": json.dumps(LINE).encode().replace(b"return", b"\xff"),
    "a line of 2 MB": json.dumps(LINE | {"prompt": "x" * 2 * 1024**2}).encode(),
}

# The header of a gzip file (10 bytes) is followed by a block of an unknown type.
DAMAGED_DEFLATE = gzip.compress(b"{}")[:10] + b"\xff" * 20


@pytest.mark.parametrize("mistake", BAD_LINES)
def test_the_error_for_a_bad_line_has_its_number(tmp_path: Path, mistake: str) -> None:
    exam = json.dumps(LINE).encode() + b"\n" + BAD_LINES[mistake]
    (tmp_path / "exam.jsonl").write_bytes(exam)

    with pytest.raises(BadSetting, match="line 2: "):
        read_exam(tmp_path / "exam.jsonl")


@pytest.mark.parametrize(
    "data",
    [None, b"", b"not gzip", gzip.compress(b"{}")[:-6], DAMAGED_DEFLATE],
    ids=["missing", "empty", "not gzip", "truncated", "damaged"],
)
def test_the_error_for_an_unusable_file_names_the_option(
    tmp_path: Path, data: bytes | None
) -> None:
    if data is not None:
        (tmp_path / "exam.jsonl.gz").write_bytes(data)

    with pytest.raises(BadSetting, match="--suite: "):
        read_exam(tmp_path / "exam.jsonl.gz")
