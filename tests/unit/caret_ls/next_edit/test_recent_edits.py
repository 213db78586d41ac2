"""The record of recent edits: what becomes one edit, and which are sent."""

from pathlib import Path

import pytest

from caret_ls.git_repository import Repository
from caret_ls.next_edit.recent_edits import MAX_BYTES, MAX_EDITS, RecentEdits, RecordedEdit
from caret_ls.text_document import Position
from caret_ls.workspace import OpenFile, OpenFiles

LINES = "".join(f"line {number}\n" for number in range(40))


class Desk:
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
        return self.recent.list(None, lambda _: True)


def test_keystrokes_of_one_line_become_one_edit() -> None:
    desk = Desk()

    desk.type(3, 6, "!?")

    assert desk.list() == [RecordedEdit("a.py", 3, "line 3\n", "line 3!?\n")]


def test_keystrokes_in_adjacent_lines_become_one_edit() -> None:
    desk = Desk()

    desk.type(3, 6, "!")
    desk.type(4, 6, "!")
    desk.type(2, 6, "!")

    assert desk.list() == [
        RecordedEdit("a.py", 2, "line 2\nline 3\nline 4\n", "line 2!\nline 3!\nline 4!\n")
    ]


def test_new_lines_become_one_edit() -> None:
    desk = Desk()

    desk.replace((3, 6), (3, 6), "\n    a = 1")
    desk.replace((4, 9), (4, 9), "\nb")

    assert desk.list() == [RecordedEdit("a.py", 4, "", "    a = 1\nb\n")]


def test_deleted_lines_become_one_edit() -> None:
    desk = Desk()

    desk.replace((3, 0), (4, 0), "")
    desk.replace((3, 0), (4, 0), "")

    assert desk.list() == [RecordedEdit("a.py", 3, "line 3\nline 4\n", "")]


def test_a_change_across_the_edit_extends_it_at_both_ends() -> None:
    desk = Desk()

    desk.type(3, 6, "!")
    desk.replace((2, 0), (5, 0), "new\n")

    assert desk.list() == [RecordedEdit("a.py", 2, "line 2\nline 3\nline 4\n", "new\n")]


def test_edits_of_different_places_stay_apart_in_their_order() -> None:
    desk = Desk()

    desk.type(30, 7, "!")
    desk.type(3, 6, "!")
    desk.type(30, 8, "?")

    assert [(edit.start_line, edit.added) for edit in desk.list()] == [
        (30, "line 30!\n"),
        (3, "line 3!\n"),
        (30, "line 30!?\n"),
    ]


def test_an_edit_that_was_undone_is_not_sent() -> None:
    desk = Desk()

    desk.type(3, 6, "!")
    desk.replace((3, 6), (3, 7), "")

    assert desk.list() == []


def test_an_edit_of_another_file_begins_a_new_one() -> None:
    desk = Desk()
    other = desk.open("b.py")

    desk.type(3, 6, "!")
    desk.type(3, 6, "!", other)
    desk.type(3, 7, "!")

    assert [edit.path for edit in desk.list()] == ["a.py", "b.py", "a.py"]


def test_a_text_that_was_replaced_as_a_whole_gives_only_the_changed_lines() -> None:
    desk = Desk()

    edit = desk.file.change_all(LINES.replace("line 3\n", "line three\n"))
    desk.recent.record(desk.file, edit.lines)

    assert desk.list() == [RecordedEdit("a.py", 3, "line 3\n", "line three\n")]


def test_only_the_last_edits_are_sent() -> None:
    desk = Desk()

    for line in range(0, 40, 2):
        desk.type(line, 0, "!")

    assert [edit.start_line for edit in desk.list()] == list(range(40 - 2 * MAX_EDITS, 40, 2))


def test_the_newest_edits_that_fit_are_sent() -> None:
    desk = Desk()
    long_text = "ü" * 1_500  # 3,000 bytes

    for line in range(0, 8, 2):
        desk.replace((line, 0), (line, 0), long_text)
    edits = desk.list()

    assert [edit.start_line for edit in edits] == [4, 6]
    assert sum(edit.num_bytes for edit in edits) <= MAX_BYTES


def test_a_long_edit_is_cut_where_it_would_displace_all_others() -> None:
    desk = Desk()

    for _ in range(8):
        desk.replace((3, 0), (3, 0), "x" * 500 + "\n")
    edits = desk.list()

    assert len(edits) > 1
    assert "".join(edit.added for edit in edits) == ("x" * 500 + "\n") * 8


def test_a_change_that_is_too_long_is_not_recorded_and_ends_the_edit() -> None:
    desk = Desk()

    desk.type(3, 6, "!")
    desk.replace((0, 0), (3, 0), "x\n" * MAX_BYTES)
    desk.type(3, 0, "y")

    assert [(edit.start_line, edit.added) for edit in desk.list()] == [
        (3, "line 3!\n"),
        (3, "yx\n"),
    ]


def test_a_file_that_was_closed_keeps_its_edits_but_ends_the_last_one() -> None:
    desk = Desk()

    desk.type(3, 6, "!")
    desk.recent.on_close(desk.file.uri)
    desk.file = desk.open("a.py", "other\n" * 40)
    desk.type(3, 5, "!")

    assert [edit.added for edit in desk.list()] == ["line 3!\n", "other!\n"]


def test_edits_of_paths_that_are_not_allowed_are_left_out() -> None:
    desk = Desk()
    desk.type(3, 6, "!")
    desk.type(3, 6, "!", desk.open("secret.py"))

    edits = desk.recent.list(None, lambda path: path != "secret.py")

    assert [edit.path for edit in edits] == ["a.py"]


def test_edits_of_other_repositories_are_left_out(tmp_path: Path) -> None:
    repository = Repository(tmp_path, "shop")
    desk = Desk()
    desk.type(3, 6, "!")

    assert desk.recent.list(repository, lambda _: True) == []


@pytest.mark.parametrize("text", ["\ud800", "a\r\nb", "\r"])
def test_any_text_can_be_sent(text: str) -> None:
    desk = Desk("line\r\n")

    desk.replace((0, 2), (0, 2), text)

    for edit in desk.list():
        edit.added.encode()
