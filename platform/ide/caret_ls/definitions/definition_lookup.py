"""Looks up definitions of the symbols before the cursor, and lists them for requests.

This server asks the editor where the symbols are defined. The editor passes the question on to its
other language servers, and may answer later. No request for a completion waits for the answer: it
contains the definitions that have arrived.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from caret_ls.clock import LoopClock
from caret_ls.content_exclusion import is_excluded
from caret_ls.definitions.symbols import Symbol, excerpt_at, find_symbols
from caret_ls.frames import FrameDefinition
from caret_ls.git_repository import Repository, find_repository
from caret_ls.repository_files import read_repository_file
from caret_ls.text_document import Position
from caret_ls.workspace import OpenFile, OpenFiles, local_path

# Of the definitions in a request, paths included; the gateway uses about 200 tokens of them.
MAX_CHARS: Final = 800
MAX_FILE_CHARS: Final = 1_000_000  # no definition is read from a longer saved file
MAX_PENDING: Final = 4  # questions without an answer; the oldest is forgotten
_MAX_AGE_S: Final = 60.0  # a symbol is looked up again after this time
_RETRY_AFTER_S: Final = 5.0  # after this time instead, if no other file was found that defines it
_MAX_LINE_CHARS: Final = 400  # before the cursor; symbols further away are not looked up
_MAX_KNOWN: Final = 1_000  # symbols whose last lookup is remembered


@dataclass(frozen=True, slots=True)
class DefinitionQuestion:
    """A question to the editor: where are the symbols at these positions defined?"""

    token: int
    uri: str
    positions: tuple[Position, ...]


@dataclass(frozen=True, slots=True)
class Location:
    uri: str
    line: int  # from 0


@dataclass(frozen=True, slots=True)
class _Pending:
    uri: str
    symbols: tuple[Symbol, ...]


class StableDefinitions:
    """The definitions that requests of one file contain, in an order that stays the same.

    New definitions are added at the end. Each change of the list changes the prompt, and the engine
    must compute the prompt again from there on. So the order never changes, and a full list loses
    its older half at once.
    """

    def __init__(self) -> None:
        self._definitions: dict[str, FrameDefinition] = {}  # by symbol, the oldest first

    def __iter__(self) -> Iterator[FrameDefinition]:
        return iter(self._definitions.values())

    def add(self, symbol: str, definition: FrameDefinition) -> None:
        """Add a definition, or replace the symbol's older one in its place."""
        if symbol not in self._definitions and definition in self._definitions.values():
            return  # the symbol is another name for a known definition
        self._definitions[symbol] = definition
        if self._num_chars() > MAX_CHARS:
            self._drop_older_half()

    def _drop_older_half(self) -> None:
        symbols = list(self._definitions)
        for symbol in symbols[:-1]:  # at least the last definition stays
            if self._num_chars() <= MAX_CHARS // 2:
                return
            del self._definitions[symbol]

    def _num_chars(self) -> int:
        return sum(len(item.path) + len(item.text) for item in self._definitions.values())


class DefinitionLookup:
    def __init__(
        self,
        files: OpenFiles,
        clock: LoopClock,
        *,
        can_send: Callable[[OpenFile], bool],
        excluded_globs: Callable[[OpenFile], Sequence[str]],
    ) -> None:
        self._files = files
        self._clock = clock
        self._can_send = can_send
        self._excluded_globs = excluded_globs
        # Sends a question to the editor; None: the editor does not support such questions.
        self.send_question: Callable[[DefinitionQuestion], None] | None = None
        self._lists: dict[str, StableDefinitions] = {}  # by file
        # Monotonic time of the last lookup, by file and symbol.
        self._looked_up_s: dict[tuple[str, str], float] = {}
        self._pending: dict[int, _Pending] = {}  # questions without an answer, by token
        self._tokens = count(1)

    def look_up(self, uri: str, position: Position) -> None:
        """Ask the editor where the symbols in the line before the cursor are defined.

        Symbols that were looked up recently are left out.
        """
        file = self._files.get(uri)
        if self.send_question is None or file is None or file.repository is None:
            return
        line_before = file.buffer.text_before(position, max_chars=_MAX_LINE_CHARS)
        line_before = line_before[max(line_before.rfind("\n"), line_before.rfind("\r")) + 1 :]
        symbols = tuple(self._select_new(uri, find_symbols(line_before)))
        if not symbols or not self._can_send(file):
            return
        token = next(self._tokens)
        self._pending[token] = _Pending(uri, symbols)
        if len(self._pending) > MAX_PENDING:
            del self._pending[next(iter(self._pending))]
        positions = tuple(Position(position.line, symbol.units) for symbol in symbols)
        self.send_question(DefinitionQuestion(token, uri, positions))

    async def on_answer(self, token: int, locations: Sequence[Location | None]) -> None:
        """Read the definitions at the locations. None: the editor does not know the definition.

        There is one location for each position of the question, in the same order.
        """
        pending = self._pending.pop(token, None)
        if pending is None:
            return
        # Not strict: the editor's answer may have a wrong number of locations.
        for symbol, location in zip(pending.symbols, locations, strict=False):
            file = self._files.get(pending.uri)
            # A server that is not ready yet knows no definition, or only the import in this file.
            # The lookup is dated back, so that the next one is possible after _RETRY_AFTER_S.
            if location is None or location.uri == pending.uri:
                earlier_s = self._clock.monotonic_s() - _MAX_AGE_S + _RETRY_AFTER_S
                self._looked_up_s[pending.uri, symbol.name] = earlier_s
            if location is None or file is None or file.repository is None:
                continue
            definition = await self._read_definition(file, file.repository, location)
            if definition is not None and self._files.get(pending.uri) is file:
                self._lists.setdefault(file.uri, StableDefinitions()).add(symbol.name, definition)

    def list(self, file: OpenFile) -> tuple[FrameDefinition, ...]:
        """Return the definitions that a request of the file contains.

        Files that are excluded now are left out. The policy may have changed since they were read.
        """
        definitions: Iterable[FrameDefinition] = self._lists.get(file.uri, ())
        globs = self._excluded_globs(file)
        return tuple(item for item in definitions if not is_excluded(item.path, globs))

    def on_close(self, uri: str) -> None:
        self._lists.pop(uri, None)
        self._looked_up_s = {
            (file_uri, symbol): at_s
            for (file_uri, symbol), at_s in self._looked_up_s.items()
            if file_uri != uri
        }

    def _select_new(self, uri: str, symbols: Iterable[Symbol]) -> Iterable[Symbol]:
        """Yield the symbols that were not looked up recently, and note the time of their lookup."""
        now_s = self._clock.monotonic_s()
        if len(self._looked_up_s) > _MAX_KNOWN:
            self._looked_up_s.clear()
        for symbol in symbols:
            uri_and_symbol = (uri, symbol.name)
            looked_up_s = self._looked_up_s.get(uri_and_symbol)
            if looked_up_s is None or now_s - looked_up_s >= _MAX_AGE_S:
                self._looked_up_s[uri_and_symbol] = now_s
                yield symbol

    async def _read_definition(
        self, file: OpenFile, repository: Repository, location: Location
    ) -> FrameDefinition | None:
        """Return the definition; None if it is in `file` itself, is empty, or must not be sent."""
        path = local_path(location.uri)
        if path is None or location.uri == file.uri:
            return None
        source = self._read_open(repository, location.uri)
        # If an open file must not be sent, its saved text must not be sent, either.
        if source is None and self._files.get(location.uri) is None:
            source = await asyncio.to_thread(_read_saved, repository, path)
        if source is None:
            return None
        source_path, source_text = source
        if source_path == file.path:  # `file` under another URI, such as a symbolic link
            return None
        excerpt = excerpt_at(source_text, location.line)
        return FrameDefinition(source_path, excerpt) if excerpt.strip() else None

    def _read_open(self, repository: Repository, uri: str) -> tuple[str, str] | None:
        """Return path and text of an open file; None if it is not open or must not be sent."""
        file = self._files.get(uri)
        if file is None or file.repository != repository or not self._can_send(file):
            return None
        return file.path, file.text


def _read_saved(repository: Repository, path: Path) -> tuple[str, str] | None:
    """Return path and text of a saved file; None if it must not be sent or cannot be read."""
    if find_repository(path) != repository:  # another policy applies there
        return None
    return read_repository_file(repository.root, path, max_chars=MAX_FILE_CHARS)
