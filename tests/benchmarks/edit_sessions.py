"""Editing sessions: the changes of a file, keystroke by keystroke.

A recording is a file of JSON lines. A line with `path` begins a session:

    {"path": "a.py", "text": "...", "files": [{"path": "b.py", "text": "..."}], "repository": "a/b"}

Each line after it is a change, in the order of time. Positions are characters from the beginning of
the text at that time. `cursor` is the position of the cursor after the change. Without it, the
cursor is behind the inserted text.

    {"at_ms": 140, "kind": "typing", "at": 310, "delete": 0, "insert": "(", "cursor": 311}

`kind` is typing, correction (backspaces), paste (or a cut), or jump (only the cursor moves).
Without a recording, sessions are generated: from the commits of this repository, if it has a
history, and from files of the standard library that the demonstration model was not trained with.
The same seed and history give the same sessions.
The simulated typist pauses as people do, makes and corrects mistakes, jumps between places and
pastes longer parts. The simulated editor indents lines and closes brackets.
"""

import difflib
import json
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from inference.completion.incoming_request import ContextFile
from inference.demo_model.corpus import SourceFile, read_corpus, standard_library

_REPOSITORY: Final = Path(__file__).resolve().parents[2]
_NUM_FILES: Final = 6  # other open files
_MIN_CHARS, _MAX_CHARS = 3_000, 48_000  # of the edited file
# The typist types about 50 words a minute, stops after some lines to think, and makes mistakes.
_KEY_MS: Final = 180
_THINK_RATE: Final = 0.35  # share of lines
_THINK_MS: Final = 1_800
_ERROR_RATE: Final = 0.02  # share of characters
_MAX_TYPED_LINES: Final = 14  # a longer hunk is pasted
# Blocks of 2 to 10 lines are deleted from a standard-library file and typed again.
_NUM_REMOVED_BLOCKS: Final = 4
_MIN_BLOCK_LINES, _MAX_BLOCK_LINES = 2, 10
# No removed block begins in the first 5 or in the last 12 lines of the file.
_MARGIN_AT_START, _MARGIN_AT_END = 5, 12
_CLOSING_BRACKETS: Final = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Change:
    at_ms: float
    kind: str
    at: int
    delete: int = 0
    insert: str = ""
    cursor: int | None = None  # None: behind the inserted text

    def apply_to(self, text: str) -> tuple[str, int]:
        """Return the changed text and the cursor's position."""
        after = text[: self.at] + self.insert + text[self.at + self.delete :]
        cursor = self.at + len(self.insert) if self.cursor is None else self.cursor
        return after, cursor


@dataclass(frozen=True, slots=True)
class Session:
    path: str
    text: str
    files: tuple[ContextFile, ...]
    repository: str
    changes: tuple[Change, ...]
    commit: str = ""  # "": not generated from a commit


def read_recording(file: Path) -> list[Session]:
    sessions: list[Session] = []
    for line in file.read_text().splitlines():
        entry = json.loads(line)
        if "path" in entry:
            files = tuple(
                ContextFile(f["path"], f["text"], edited_at=0.0) for f in entry.get("files", ())
            )
            repository = entry.get("repository", "")
            sessions.append(Session(entry["path"], entry["text"], files, repository, ()))
        else:
            last = sessions[-1]
            changes = (*last.changes, Change(**entry))
            sessions[-1] = Session(last.path, last.text, last.files, last.repository, changes)
    return sessions


def make_sessions(num_sessions: int, *, seed: int) -> Iterator[Session]:
    """Yield sessions, alternately generated from a commit and from a standard-library file."""
    rng = random.Random(seed)
    commits = list(_commits())
    for number in range(num_sessions):
        if number % 2 == 0 and commits:
            yield _make_commit_session(*_choose_commit(commits, rng), rng)
        else:
            yield _make_library_session(rng)


def type_text(before: str, after: str, rng: random.Random) -> Iterator[Change]:
    """Yield the keystrokes of a typist who turns `before` into `after`."""
    yield from _Typist(rng).type_changes(before, after)


def _make_commit_session(commit: str, path: str, rng: random.Random) -> Session:
    before, after = (_git("show", f"{revision}:{path}") for revision in (f"{commit}^", commit))
    folder = path.rpartition("/")[0]
    names = _git("ls-tree", "--name-only", commit, f"{folder}/" if folder else ".").splitlines()
    other_names = [name for name in names if name.endswith(".py") and name != path]
    chosen_names = rng.sample(other_names, min(_NUM_FILES, len(other_names)))
    files = tuple(
        ContextFile(name, _git("show", f"{commit}:{name}"), edited_at=0.0) for name in chosen_names
    )
    changes = tuple(type_text(before, after, rng))
    return Session(path, before, files, "caret/caret", changes, commit)


def _make_library_session(rng: random.Random) -> Session:
    """Make a session in which the typist types some blocks that were removed from a file."""
    edited = rng.choice(_held_out_files())
    paths = sorted(standard_library().glob("*.py"))
    paths = [path for path in paths if _MIN_CHARS < path.stat().st_size < _MAX_CHARS]
    other_paths = rng.sample([path for path in paths if path.name != edited.path], _NUM_FILES)
    lines = edited.text.splitlines(keepends=True)
    possible_starts = range(_MARGIN_AT_START, len(lines) - _MARGIN_AT_END)
    for start in sorted(rng.sample(possible_starts, _NUM_REMOVED_BLOCKS), reverse=True):
        del lines[start : start + rng.randint(_MIN_BLOCK_LINES, _MAX_BLOCK_LINES)]
    files = tuple(
        ContextFile(path.name, path.read_text(errors="replace"), edited_at=0.0)
        for path in other_paths
    )
    before = "".join(lines)
    changes = tuple(type_text(before, edited.text, rng))
    return Session(edited.path, before, files, "python/cpython", changes)


@cache
def _held_out_files() -> list[SourceFile]:
    files = read_corpus(standard_library()).held_out
    return [file for file in files if _MIN_CHARS < len(file.text) < _MAX_CHARS]


def _commits() -> Iterator[tuple[str, str]]:
    """Yield pairs of a commit and a file that it changed, oldest first.

    Yields nothing if the repository has no history.
    """
    commit = ""
    try:
        log = _git(
            "log", "--reverse", "--diff-filter=M", "--name-only", "--format=:%H", "--", "*.py"
        )
    except (FileNotFoundError, subprocess.CalledProcessError):  # no Git, or no history
        return
    # The format puts a colon before each commit. The commit's files follow, a path on each line.
    for line in log.splitlines():
        if line.startswith(":"):
            commit = line[1:]
        elif line:
            yield commit, line


def _choose_commit(commits: list[tuple[str, str]], rng: random.Random) -> tuple[str, str]:
    while True:  # always ends: many of the repository's files have a size between the two limits
        commit, path = rng.choice(commits)
        if _MIN_CHARS < len(_git("show", f"{commit}:{path}")) < _MAX_CHARS:
            return commit, path


def _git(*arguments: str) -> str:
    command = ("git", "-C", str(_REPOSITORY), *arguments)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class _Typist:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._at_ms = 0.0

    def type_changes(self, before: str, after: str) -> Iterator[Change]:
        """Yield the changes that turn `before` into `after`, hunk by hunk."""
        old, new = (text.splitlines(keepends=True) for text in (before, after))
        offset = 0  # by how many characters the changes so far have lengthened the text
        starts = [0]  # the position of each line of `old`, and of its end
        for line in old:
            starts.append(starts[-1] + len(line))
        opcodes = difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes()
        for tag, old_start, old_end, new_start, new_end in opcodes:
            if tag == "equal":
                continue
            at, num_deleted = starts[old_start] + offset, starts[old_end] - starts[old_start]
            yield self._change("jump", at, pause_ms=_THINK_MS)
            if num_deleted:
                yield self._change("paste", at, delete=num_deleted, pause_ms=_THINK_MS)
            inserted = "".join(new[new_start:new_end])
            yield from self._type_insertion(at, inserted)
            offset += len(inserted) - num_deleted

    def _type_insertion(self, at: int, text: str) -> Iterator[Change]:
        if text.count("\n") > _MAX_TYPED_LINES:
            yield self._change("paste", at, insert=text, pause_ms=_THINK_MS)
            return
        lines = text.splitlines()
        for number, line in enumerate(lines):
            indent = line[: len(line) - len(line.lstrip())]
            # The typist presses Enter, and the editor indents. At first, the cursor is at the
            # beginning of the line before which the text is inserted, so the line break must come
            # behind the cursor.
            opening = f"{indent}\n" if number == 0 else f"\n{indent}"
            cursor = at + len(indent) if number == 0 else at + 1 + len(indent)
            yield self._change("typing", at, insert=opening, cursor=cursor)
            at = cursor
            for change in self._type_line(at, line[len(indent) :]):
                at = change.at + len(change.insert) if change.cursor is None else change.cursor
                yield change
            if self._rng.random() < _THINK_RATE:
                self._at_ms += self._rng.expovariate(1 / _THINK_MS)

    def _type_line(self, at: int, line: str) -> Iterator[Change]:
        closing: list[str] = []  # brackets that the editor has inserted behind the cursor
        for character in line:
            if self._rng.random() < _ERROR_RATE:
                wrong = self._rng.choice("abcdefghijklmnopqrstuvwxyz")
                yield self._change("typing", at, insert=wrong)
                yield self._change("correction", at, delete=1, pause_ms=2 * _KEY_MS)
            if closing and character == closing[-1]:  # typing it replaces the editor's bracket
                closing.pop()
                yield self._change("typing", at, delete=1, insert=character)
            elif character in _CLOSING_BRACKETS:
                closing.append(_CLOSING_BRACKETS[character])
                pair = character + _CLOSING_BRACKETS[character]
                yield self._change("typing", at, insert=pair, cursor=at + 1)
            else:
                yield self._change("typing", at, insert=character)
            at += 1
        if closing:  # delete the brackets that the line does not close
            yield self._change("correction", at, delete=len(closing))

    def _change(
        self,
        kind: str,
        at: int,
        *,
        delete: int = 0,
        insert: str = "",
        cursor: int | None = None,
        pause_ms: float = _KEY_MS,
    ) -> Change:
        # The mean of the random factor is about 1.
        self._at_ms += pause_ms * self._rng.lognormvariate(-0.1, 0.5)
        return Change(round(self._at_ms, 1), kind, at, delete, insert, cursor)


def iterate_texts(session: Session) -> Iterator[tuple[Change, str, str]]:
    """Yield each change, with the texts before and after the cursor once it is applied."""
    text = session.text
    for change in session.changes:
        text, cursor = change.apply_to(text)
        yield change, text[:cursor], text[cursor:]
