"""Editing sessions, as the benchmark `prefix_reuse` replays them."""

import json
import random
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.benchmarks.edit_sessions import (
    Session,
    iterate_texts,
    make_sessions,
    read_recording,
    type_text,
)

# Each line ends in a line break, as in a file. Nothing is typed after the last line break.
LINES = st.lists(st.text(alphabet="ab (){}[\t", max_size=12), max_size=30)


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


@given(LINES, LINES, st.integers())
def test_typed_changes_turn_one_text_into_the_other(
    before: list[str], after: list[str], seed: int
) -> None:
    changes = tuple(type_text(_text(before), _text(after), random.Random(seed)))
    session = Session("a.py", _text(before), files=(), repository="", changes=changes)

    texts = [prefix + suffix for _change, prefix, suffix in iterate_texts(session)]

    last_text = texts[-1] if texts else _text(before)  # equal texts need no changes
    assert last_text == _text(after)


def test_changes_are_in_order_of_time_and_depend_only_on_the_seed() -> None:
    sessions, same_sessions = (list(make_sessions(3, seed=4)) for _ in range(2))

    assert sessions == same_sessions
    for session in sessions:
        times = [change.at_ms for change in session.changes]
        assert times == sorted(times)
        assert {"typing", "jump"} <= {change.kind for change in session.changes}


def test_a_recording_is_parsed(tmp_path: Path) -> None:
    file = tmp_path / "recording.jsonl"
    lines = [
        {"path": "a.py", "text": "f\n", "files": [{"path": "b.py", "text": "b\n"}]},
        {"at_ms": 10, "kind": "typing", "at": 1, "delete": 0, "insert": "()", "cursor": 2},
        {"at_ms": 90, "kind": "typing", "at": 2, "insert": "x"},
        {"at_ms": 95, "kind": "correction", "at": 2, "delete": 1},
        {"path": "c.py", "text": ""},
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))

    first, second = read_recording(file)

    assert (first.files[0].path, second.path, second.changes) == ("b.py", "c.py", ())
    # In the first change, "cursor" puts the cursor between the parentheses.
    assert [(prefix, suffix) for _change, prefix, suffix in iterate_texts(first)] == [
        ("f(", ")\n"),
        ("f(x", ")\n"),
        ("f(", ")\n"),
    ]
