"""Simulated developers who type: each requests a completion after every character.

Each has a file of a Python library open, with the cursor inside one of its functions, and types an
identifier at the beginning of a new line.
"""

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
_WORD_CHARS: Final = 6  # an underscore ends each word: a long random name would look like a secret
_LIBRARIES: Final = ("transformers", "torch", "vllm")
_MAX_FILE_CHARS: Final = 400_000  # larger files are tables of data


@dataclass(frozen=True, slots=True)
class Place:
    """A cursor at the beginning of a statement, after its indentation."""

    prefix: str
    suffix: str


@dataclass(slots=True)
class Typist:
    """A developer who requests a completion after each character.

    Each request has one character more than the previous one, until the identifier is complete. A
    request is repeated only after a long time. Otherwise, the engine would have its whole prompt
    cached.
    """

    number: int
    place: Place
    name: str = ""
    num_names: int = 0  # identifiers that are complete; the next one has other letters

    def type(self) -> tuple[str, str]:
        """Type one character and return the texts before and after the cursor."""
        if len(self.name) >= _MAX_NAME_CHARS:
            self.name, self.num_names = "", self.num_names + 1
        ends_word = len(self.name) % _WORD_CHARS == _WORD_CHARS - 1
        self.name += "_" if ends_word else self._letter()
        return self.place.prefix + self.name, self.place.suffix

    def _letter(self) -> str:
        # Typists, places in a name, and names differ in their letters.
        letters = string.ascii_lowercase
        return letters[(self.number + 7 * len(self.name) + 3 * self.num_names) % len(letters)]


def typists(num: int) -> list[Typist]:
    """Return this many typists, always at the same places."""
    places = shuffled_places(random.Random(20_261_121))
    return [Typist(number, next(places)) for number in range(num)]


def shuffled_places(order: random.Random) -> Iterator[Place]:
    """Yield places in the standard library, and then in the large libraries of the engine.

    The places of a file follow each other and do not overlap. The standard library has some 2,300
    places, and the other libraries have some 7,000.
    """
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
        library = find_spec(name)  # an import would take seconds
        if library is not None and library.origin is not None:
            yield Path(library.origin).parent


def _places_of(file: Path) -> Iterator[Place]:
    try:
        text = file.read_text()
        if not text.isascii() or len(text) > _MAX_FILE_CHARS:
            return
        tree = ast.parse(text)
    except (SyntaxError, UnicodeError, ValueError):  # libraries have invalid files for their tests
        return
    offsets = _offsets(text)
    free_from = 0
    for line, column in sorted(_statements(tree)):
        cursor = offsets[line - 1] + column
        start, end = cursor - PREFIX_CHARS, cursor + SUFFIX_CHARS
        if start >= free_from and end <= len(text):
            # The identifier is typed on a new line above the statement.
            yield Place(prefix=text[start:cursor], suffix="\n" + text[offsets[line - 1] : end])
            free_from = end


def _statements(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """Yield line and column of each statement of a function's body, except the first statement."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for statement in node.body[1:]:
                yield statement.lineno, statement.col_offset


def _offsets(text: str) -> list[int]:
    offsets = [0]
    for line in text.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    return offsets
