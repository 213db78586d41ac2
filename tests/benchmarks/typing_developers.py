"""Developers who type: each has a file of a Python library open, stands inside one of its
functions, and asks after every character of the identifier that begins a new line there."""

import ast
import random
import string
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

# Together about 2,000 tokens of the demonstration model, so that the prompt is full.
PREFIX_CHARS: Final = 4_800
SUFFIX_CHARS: Final = 2_400
_MAX_NAME_CHARS: Final = 24
_WORD_CHARS: Final = 6  # a longer run of letters that make no word might be a secret
_LIBRARIES: Final = ("transformers", "torch", "vllm")
_MAX_FILE_CHARS: Final = 400_000  # tables of data, beyond that


@dataclass(frozen=True, slots=True)
class Place:
    """A cursor at the beginning of a statement, its indentation before it."""

    prefix: str
    suffix: str


@dataclass(slots=True)
class Typist:
    """Asks after each character. Every request differs from the one before by one character, and
    nothing is asked twice for a long time: an engine would find all of it cached."""

    number: int
    place: Place
    name: str = ""
    num_names: int = 0  # that were given up for another one

    def type(self) -> tuple[str, str]:
        """The texts before and after the cursor, one character later."""
        if len(self.name) >= _MAX_NAME_CHARS:
            self.name, self.num_names = "", self.num_names + 1
        is_between = len(self.name) % _WORD_CHARS == _WORD_CHARS - 1
        self.name += "_" if is_between else self._letter()
        return self.place.prefix + self.name, self.place.suffix

    def _letter(self) -> str:
        letters = string.ascii_lowercase
        return letters[(self.number + 7 * len(self.name) + 3 * self.num_names) % len(letters)]


def typists(num: int) -> list[Typist]:
    """In as many places, always the same ones."""
    places = shuffled_places(random.Random(20_261_121))
    return [Typist(number, next(places)) for number in range(num)]


def shuffled_places(order: random.Random) -> Iterator[Place]:
    """Places of the whole standard library, and then of the engine's large ones: a file's one after
    the other and none overlapping. Some 2,300 each."""
    for folder in _folders():
        files = sorted(
            path
            for path in folder.rglob("*.py")
            if "site-packages" not in path.relative_to(folder).parts
        )
        order.shuffle(files)
        for file in files:
            yield from _places_of(file)


def _folders() -> Iterator[Path]:
    yield Path(sysconfig.get_path("stdlib"))
    for name in _LIBRARIES:
        library = find_spec(name)  # not imported, which takes seconds
        if library is not None and library.origin is not None:
            yield Path(library.origin).parent


def _places_of(file: Path) -> Iterator[Place]:
    try:
        text = file.read_text()
        if not text.isascii() or len(text) > _MAX_FILE_CHARS:
            return
        tree = ast.parse(text)
    except (SyntaxError, UnicodeError, ValueError):  # files that test the parser
        return
    offsets = _offsets(text)
    free_from = 0
    for line, column in sorted(_statements(tree)):
        cursor = offsets[line - 1] + column
        start, end = cursor - PREFIX_CHARS, cursor + SUFFIX_CHARS
        if start >= free_from and end <= len(text):
            yield Place(prefix=text[start:cursor], suffix="\n" + text[offsets[line - 1] : end])
            free_from = end


def _statements(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """Line and column of statements inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for statement in node.body[1:]:
                yield statement.lineno, statement.col_offset


def _offsets(text: str) -> list[int]:
    offsets = [0]
    for line in text.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    return offsets
