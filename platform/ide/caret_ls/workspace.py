"""Files that are open in the editor."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import unquote, urlsplit

from caret_ls.completion_context import CompletionContext
from caret_ls.file_kind import FileKind, detect_file_kind
from caret_ls.git_repository import Repository, find_repository
from caret_ls.imports import framework_of, imports_of
from caret_ls.text_document import Position, TextDocument, TextEdit

# The parts of the text before and after the cursor that a request contains. A prompt contains a few
# thousand tokens of them, and the gateway parses more of them to check completions.
MAX_PREFIX_CHARS: Final = 128 * 1024
MAX_SUFFIX_CHARS: Final = 64 * 1024
_HEAD_CHARS: Final = 16_000  # enough to detect the kind of a file
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")  # JSON can represent it, UTF-8 text cannot


@dataclass(frozen=True, slots=True)
class SelectedCompletion:
    """The selected item of the editor's completion list: LSP's selectedCompletionInfo."""

    start: Position
    end: Position
    text: str


@dataclass(slots=True)
class OpenFile:
    uri: str
    language: str  # language ID of the editor
    path: str  # in its repository, with "/"; outside of a repository, only the file's name
    repository: Repository | None  # None: the file is in no repository
    buffer: TextDocument
    kind: FileKind
    has_selection: bool = False
    revision: int = 0  # incremented by each change
    version: int = 0  # the editor's version number of the text
    _text: str | None = field(default=None, repr=False)  # None: not read since the last change
    _imports: tuple[str, ...] = ()

    @property
    def repository_name(self) -> str:
        return self.repository.name if self.repository else ""

    @property
    def text(self) -> str:
        """The text as it can be sent: without lone surrogates."""
        if self._text is None:
            self._text = replace_surrogates(self.buffer.text)
            self._imports = imports_of(self.language, self._text)
        return self._text

    @property
    def imports(self) -> tuple[str, ...]:
        return self._imports if self.text else ()  # `text` updates `_imports`

    @property
    def framework(self) -> str:
        return framework_of(self.imports)

    def change(self, start: Position, end: Position, text: str) -> TextEdit:
        self._invalidate_text()
        return self.buffer.replace(start, end, text)

    def change_all(self, text: str) -> TextEdit:
        self._invalidate_text()
        return self.buffer.replace_all(text)

    def untyped_rest(self, position: Position, completion: SelectedCompletion) -> str | None:
        """Return the part of the selected list item that is not typed yet.

        `position` is the cursor. None: the text that the item replaces is not the start of the
        item, or does not end at the cursor.
        """
        start, end, at = map(self.buffer.to_offset, (completion.start, completion.end, position))
        num_typed = at - start
        before = self.buffer.text_before(position, max_chars=MAX_PREFIX_CHARS)
        is_at_end = end == at and 0 <= num_typed <= len(completion.text)
        is_typed = is_at_end and before.endswith(completion.text[:num_typed])
        return completion.text[num_typed:] if is_typed else None

    def context_at(
        self, position: Position, *, is_invoked: bool, lead: str = ""
    ) -> CompletionContext:
        """Return the context of a completion, as if `lead` stood before the cursor.

        `lead` is the untyped rest of the selected item of a completion list, for example.
        """
        return CompletionContext(
            uri=self.uri,
            path=self.path,
            language=self.language,
            prefix=replace_surrogates(
                self.buffer.text_before(position, max_chars=MAX_PREFIX_CHARS) + lead
            ),
            suffix=replace_surrogates(self.buffer.text_after(position, max_chars=MAX_SUFFIX_CHARS)),
            is_invoked=is_invoked,
        )

    def _invalidate_text(self) -> None:
        self._text = None
        self.revision += 1


class OpenFiles:
    def __init__(
        self, find_repository: Callable[[Path], Repository | None] = find_repository
    ) -> None:
        self._find_repository = find_repository
        self._open: dict[str, OpenFile] = {}

    def __iter__(self) -> Iterator[OpenFile]:
        return iter(self._open.values())

    def get(self, uri: str) -> OpenFile | None:
        return self._open.get(uri)

    def open(self, uri: str, language: str, text: str) -> OpenFile:
        file_path = local_path(uri)
        repository = self._find_repository(file_path) if file_path is not None else None
        path = _path_of(uri, file_path, repository)
        kind = detect_file_kind(path, text[:_HEAD_CHARS])
        self._open[uri] = OpenFile(uri, language, path, repository, TextDocument(text), kind)
        return self._open[uri]

    def close(self, uri: str) -> None:
        self._open.pop(uri, None)


def local_path(uri: str) -> Path | None:
    """Return the path of a file; None if it is not on a local disk (`untitled:` or remote)."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return None
    # On Windows: /c:/folder
    return Path(re.sub(r"^/([A-Za-z]:)", r"\1", unquote(parts.path)))


def _path_of(uri: str, file_path: Path | None, repository: Repository | None) -> str:
    """Return the path in the repository; outside of a repository, only the file's name.

    The folders above the repository or the file are private, and therefore not sent.
    """
    if file_path is not None and repository is not None:
        return repository.path_of(file_path)
    return PurePosixPath(unquote(urlsplit(uri).path)).name


def replace_surrogates(text: str) -> str:
    """Replace each lone surrogate, which cannot be sent, by one other character."""
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)
