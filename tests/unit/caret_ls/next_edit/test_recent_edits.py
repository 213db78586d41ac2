"""The record of recent edits: the changes that become one edit, and the edits that are sent."""

from pathlib import Path

import pytest

from caret_ls.git_repository import Repository
from caret_ls.next_edit.recent_edits import MAX_BYTES, MAX_EDITS, RecentEdits, RecordedEdit
from caret_ls.text_document import Position
from caret_ls.workspace import OpenFile, OpenFiles

LINES = "".join(f"line {number}\n" for number in range(40))


class Harness:
    """An open file, and the record of its edits."""

    def __init__(self, text: str = LINES) -> None:
        self.recent = RecentEdits()
        self.files = OpenFiles(lambda _: None)
        self.file = self.open("a.py", text)

    def open(self, name: str, text: str = LINES) -> OpenFile:
        return self.files.open(f"file:///nowhere/{name}", "python", text)

    def replace(
        self, start: tuple[int, int], end: tuple[int, int], text: str, file: OpenFile | None = None
    ) -> None:
        changed = file or self.file
        edit = changed.change(Position(*start), Position(*end), text)
        self.recent.record(changed, edit.lines)

    def type(self, line: int, column: int, text: str, file: OpenFile | None = None) -> None:
        for index, character in enumerate(text):
            self.replace((line, column + index), (line, column + index), character, file)

    def list(self) -> list[RecordedEdit]:
        """Return the edits that are sent if all paths are allowed. The files have no repository."""
        return self.recent.list(None, lambda _: True)


def test_keystrokes_of_one_line_become_one_edit() -> None:
    harness = Harness()

    harness.type(3, 6, "!?")

    assert harness.list() == [RecordedEdit("a.py", 3, "line 3\n", "line 3!?\n")]


def test_keystrokes_in_adjacent_lines_become_one_edit() -> None:
    harness = Harness()

    harness.type(3, 6, "!")
    harness.type(4, 6, "!")
    harness.type(2, 6, "!")

    assert harness.list() == [
        RecordedEdit("a.py", 2, "line 2\nline 3\nline 4\n", "line 2!\nline 3!\nline 4!\n")
    ]


def test_new_lines_become_one_edit() -> None:
    harness = Harness()

    harness.replace((3, 6), (3, 6), "\n    a = 1")
    harness.replace((4, 9), (4, 9), "\nb")

    assert harness.list() == [RecordedEdit("a.py", 4, "", "    a = 1\nb\n")]


def test_deleted_lines_become_one_edit() -> None:
    harness = Harness()

    harness.replace((3, 0), (4, 0), "")
    harness.replace((3, 0), (4, 0), "")

    assert harness.list() == [RecordedEdit("a.py", 3, "line 3\nline 4\n", "")]


def test_a_change_across_the_edit_extends_it_at_both_ends() -> None:
    harness = Harness()

    harness.type(3, 6, "!")
    harness.replace((2, 0), (5, 0), "new\n")

    assert harness.list() == [RecordedEdit("a.py", 2, "line 2\nline 3\nline 4\n", "new\n")]


def test_edits_of_different_places_stay_apart_in_their_order() -> None:
    harness = Harness()

    harness.type(30, 7, "!")
    harness.type(3, 6, "!")
    harness.type(30, 8, "?")

    assert [(edit.start_line, edit.added) for edit in harness.list()] == [
        (30, "line 30!\n"),
        (3, "line 3!\n"),
        (30, "line 30!?\n"),
    ]


def test_an_edit_that_was_undone_is_not_sent() -> None:
    harness = Harness()

    harness.type(3, 6, "!")
    harness.replace((3, 6), (3, 7), "")

    assert harness.list() == []


def test_an_edit_of_another_file_begins_a_new_one() -> None:
    harness = Harness()
    other = harness.open("b.py")

    harness.type(3, 6, "!")
    harness.type(3, 6, "!", other)
    harness.type(3, 7, "!")

    assert [edit.path for edit in harness.list()] == ["a.py", "b.py", "a.py"]


def test_a_text_that_was_replaced_as_a_whole_gives_only_the_changed_lines() -> None:
    harness = Harness()

    edit = harness.file.change_all(LINES.replace("line 3\n", "line three\n"))
    harness.recent.record(harness.file, edit.lines)

    assert harness.list() == [RecordedEdit("a.py", 3, "line 3\n", "line three\n")]


def test_only_the_last_edits_are_sent() -> None:
    harness = Harness()

    for line in range(0, 40, 2):  # edits of adjacent lines would become one edit
        harness.type(line, 0, "!")

    assert [edit.start_line for edit in harness.list()] == list(range(40 - 2 * MAX_EDITS, 40, 2))


def test_the_newest_edits_that_fit_into_the_size_limit_are_sent() -> None:
    harness = Harness()
    long_text = "ü" * 1_500  # 3,000 bytes

    for line in range(0, 8, 2):
        harness.replace((line, 0), (line, 0), long_text)
    edits = harness.list()

    # Two edits of 3,000 bytes fit into MAX_BYTES (8 KiB) with their line texts; three do not.
    assert [edit.start_line for edit in edits] == [4, 6]
    assert sum(edit.num_bytes for edit in edits) <= MAX_BYTES


def test_a_long_edit_is_split_so_that_it_does_not_displace_all_others() -> None:
    harness = Harness()

    for _ in range(8):
        harness.replace((3, 0), (3, 0), "x" * 500 + "\n")
    edits = harness.list()

    assert len(edits) > 1
    assert "".join(edit.added for edit in edits) == ("x" * 500 + "\n") * 8


def test_a_change_that_is_too_long_is_not_recorded_and_ends_the_edit() -> None:
    harness = Harness()

    harness.type(3, 6, "!")
    harness.replace((0, 0), (3, 0), "x\n" * MAX_BYTES)
    harness.type(3, 0, "y")

    assert [(edit.start_line, edit.added) for edit in harness.list()] == [
        (3, "line 3!\n"),
        (3, "yx\n"),  # the line is now one of the inserted lines `x`
    ]


def test_a_file_that_was_closed_keeps_its_edits_but_ends_the_last_one() -> None:
    harness = Harness()

    harness.type(3, 6, "!")
    harness.recent.on_close(harness.file.uri)
    harness.file = harness.open("a.py", "other\n" * 40)
    harness.type(3, 5, "!")

    assert [edit.added for edit in harness.list()] == ["line 3!\n", "other!\n"]


def test_edits_of_paths_that_are_not_allowed_are_left_out() -> None:
    harness = Harness()
    harness.type(3, 6, "!")
    harness.type(3, 6, "!", harness.open("secret.py"))

    edits = harness.recent.list(None, lambda path: path != "secret.py")

    assert [edit.path for edit in edits] == ["a.py"]


def test_edits_of_other_repositories_are_left_out(tmp_path: Path) -> None:
    repository = Repository(tmp_path, "shop")
    harness = Harness()
    harness.type(3, 6, "!")

    assert harness.recent.list(repository, lambda _: True) == []


@pytest.mark.parametrize("text", ["\ud800", "a\r\nb", "\r"])
def test_any_text_can_be_sent(text: str) -> None:
    harness = Harness("line\r\n")

    harness.replace((0, 2), (0, 2), text)

    edits = harness.list()
    assert edits
    for edit in edits:
        edit.added.encode()  # raises an error for a text that UTF-8 cannot represent
