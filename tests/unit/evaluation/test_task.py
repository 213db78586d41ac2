"""The pattern of an evaluation task, by which reports group scores."""

from dataclasses import replace

import pytest

from tests.fakes.evaluation import TASK

LINES = {
    "    # the ": "comments",
    "import ": "imports",
    "#include <": "imports",
    "  } else if (": "conditions",
    "    return area(": "call_arguments",
    "    total = ": "other",
}


@pytest.mark.parametrize("line", LINES)
def test_the_line_at_the_cursor_determines_the_pattern(line: str) -> None:
    task = replace(TASK, prefix=f"x = 1\n{line}", answer="y)")

    assert task.pattern == LINES[line]


def test_tasks_from_test_files_have_the_pattern_tests() -> None:
    assert replace(TASK, path="tests/test_area.py").pattern == "tests"
    assert replace(TASK, path="src/attestation.py").pattern != "tests"  # contains "test"
