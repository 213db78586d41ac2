"""Evaluation tasks that are read from a public file of fill-in-the-middle tasks."""

import gzip
import json
from pathlib import Path

import pytest

from caret.foundation.environment import BadSetting
from inference.evaluation.exam_reader import read_exam
from inference.evaluation.task import TaskKind, UnitTest

# The first fields of HumanEval-SingleLineInfilling.
LINE = {
    "task_id": "SingleLineInfilling/HumanEval/0/L0",
    "entry_point": "double",
    "prompt": "def double(x):\n",
    "suffix": "\n",
    "canonical_solution": "    return 2 * x",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
}


@pytest.mark.parametrize("name", ["exam.jsonl", "exam.jsonl.gz"])
def test_a_public_file_gives_tasks_with_tests(tmp_path: Path, name: str) -> None:
    lines = json.dumps(LINE) + "\n\n" + json.dumps(LINE | {"test": ""}) + "\n"
    data = lines.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)

    with_test, without = read_exam(tmp_path / name)

    assert with_test.kind is TaskKind.SINGLE_LINE
    assert with_test.answer == "    return 2 * x"
    assert with_test.unit_test == UnitTest(LINE["test"], "double")
    assert without.unit_test is None


@pytest.mark.parametrize(
    ("task_id", "kind"),
    [
        ("MultiLineInfilling/HumanEval/0/L0_L2", TaskKind.MULTI_LINE),
        ("RandomSpanInfilling/HumanEval/0/1", TaskKind.RANDOM_SPAN),
        ("ours/1", TaskKind.SINGLE_LINE),
    ],
)
def test_the_id_or_the_answer_decides_the_kind(
    tmp_path: Path, task_id: str, kind: TaskKind
) -> None:
    (tmp_path / "exam.jsonl").write_text(json.dumps(LINE | {"task_id": task_id}))

    assert read_exam(tmp_path / "exam.jsonl")[0].kind is kind


BAD = {
    "not JSON": b"{",
    "a list": b"[]",
    "a missing field": json.dumps({"task_id": "1"}).encode(),
    "a number as the prompt": json.dumps(LINE | {"prompt": 1}).encode(),
    "not UTF-8": json.dumps(LINE).encode().replace(b"return", b"\xff"),
    "a line of 2 MB": json.dumps(LINE | {"prompt": "x" * 2 * 1024**2}).encode(),
}

# The header of a gzip file (10 bytes) is followed by a block of an unknown type.
DAMAGED_DEFLATE = gzip.compress(b"{}")[:10] + b"\xff" * 20


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "exam.jsonl").write_bytes(json.dumps(LINE).encode() + b"\n" + BAD[name])

    with pytest.raises(BadSetting, match="line 2: "):
        read_exam(tmp_path / "exam.jsonl")


@pytest.mark.parametrize(
    "data",
    [None, b"", b"not gzip", gzip.compress(b"{}")[:-6], DAMAGED_DEFLATE],
    ids=["missing", "empty", "not gzip", "truncated", "damaged"],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, data: bytes | None) -> None:
    if data is not None:
        (tmp_path / "exam.jsonl.gz").write_bytes(data)

    with pytest.raises(BadSetting, match="--suite: "):
        read_exam(tmp_path / "exam.jsonl.gz")
