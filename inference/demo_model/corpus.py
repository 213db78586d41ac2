"""The Python standard library as a corpus, with whole files held out for validation.

Files with tables, generated text or test data are left out. Tests of the library are part of the
corpus, but training draws them less often than ordinary code, and none of them is held out.
"""

import hashlib
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

# Installed packages, and folders of tables, generated texts and test data.
EXCLUDED_FOLDERS = frozenset({"site-packages", "encodings", "pydoc_data", "data", "__pycache__"})
TEST_FOLDERS = frozenset({"test", "tests", "idle_test"})
MAX_LINE_CHARS = 400  # longer lines are tables or packed data
MIN_FILE_CHARS = 200
MIN_HELD_OUT_CHARS = 2_000
HELD_OUT_PER_MILLE = 40  # of the files that are no tests and have at least MIN_HELD_OUT_CHARS


@dataclass(frozen=True, slots=True)
class SourceFile:
    path: str  # relative to the library's root, with forward slashes
    text: str
    is_test: bool


@dataclass(frozen=True, slots=True)
class Corpus:
    training: tuple[SourceFile, ...]
    held_out: tuple[SourceFile, ...]  # ordinary code only


def standard_library() -> Path:
    return Path(sysconfig.get_paths()["stdlib"])


def read_corpus(root: Path) -> Corpus:
    """Read the Python files of a library. `root` is the library's folder."""
    return split(_read_files(root))


def split(files: Iterable[SourceFile]) -> Corpus:
    """Split the files by the hashes of their paths. So no file influences the choice of another."""
    training: list[SourceFile] = []
    held_out: list[SourceFile] = []
    for file in files:
        (held_out if _is_held_out(file) else training).append(file)
    return Corpus(tuple(training), tuple(held_out))


def _is_held_out(file: SourceFile) -> bool:
    if file.is_test or len(file.text) < MIN_HELD_OUT_CHARS:
        return False
    digest = hashlib.sha256(file.path.encode()).digest()
    return int.from_bytes(digest[:4], "big") % 1000 < HELD_OUT_PER_MILLE


def _read_files(root: Path) -> list[SourceFile]:
    files = []
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root).as_posix()
        if not _is_included(relative):
            continue
        text = _read_text(path)
        if text is not None:
            files.append(SourceFile(relative, text, is_test=_is_test(relative)))
    return files


def _is_included(relative: str) -> bool:
    path = PurePosixPath(relative)
    # Files that are made when the interpreter is built.
    is_built = path.parts[0].startswith(("config-", "lib-dynload", "_sysconfigdata"))
    return not is_built and EXCLUDED_FOLDERS.isdisjoint(path.parts)


def _is_test(relative: str) -> bool:
    return not TEST_FOLDERS.isdisjoint(PurePosixPath(relative).parts)


def _read_text(path: Path) -> str | None:
    """Return the text; None if it is not UTF-8, is too short, or has a very long line."""
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        return None
    longest = max(map(len, text.splitlines()), default=0)
    return text if len(text) >= MIN_FILE_CHARS and longest <= MAX_LINE_CHARS else None
