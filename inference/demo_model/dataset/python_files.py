"""Choose source files that are worth learning from, and find files that share held-out text."""

import ast
import hashlib
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from inference.demo_model.corpus import (
    MAX_LINE_CHARS,
    MIN_FILE_CHARS,
    TEST_FOLDERS,
    SourceFile,
)
from inference.demo_model.dataset.licences import mentions_copyleft

MAX_FILE_CHARS = 300_000  # longer files are tables or generated
MAX_LITERAL_SHARE = 0.5  # of a file's lines: see _literal_share
HEADER_CHARS = 3_000  # the beginning of a file, with notices of a licence or a generator
GENERATED = re.compile(
    r"(auto-?)?generated (by|from|code|file)|do not (edit|modify)", re.IGNORECASE
)
# Vendored packages, and folders of generated files, translations and tables.
EXCLUDED_FOLDERS = frozenset(
    {
        "_vendor", "vendor", "vendored", "_vendored", "_vendored_packages", "packages",
        "third_party", "thirdparty", "extern", "externals", "_external", "external",
        "site-packages", "node_modules", "typeshed", "migrations", "locale", "locales",
        "generated", "_generated", "__pycache__", "encodings", "unidata", "data",
    }
)  # fmt: skip
SHINGLE_LINES = 3  # a shingle is a run of this many lines
MIN_SHINGLE_CHARS = 45  # shorter runs of lines also occur in unrelated files
# A file counts as a copy if more than this number of its shingles, or more than this share of them,
# are in the held-out files.
MAX_SHARED_SHINGLES = 8
MAX_SHARED_SHARE = 0.1


def iterate_wheel_files(wheel: zipfile.ZipFile, package: str) -> Iterator[SourceFile]:
    """Yield the source files of a wheel, under paths that begin with the package's name."""
    for name in sorted(wheel.namelist()):
        path = PurePosixPath(name)
        if path.suffix != ".py" or not EXCLUDED_FOLDERS.isdisjoint(path.parts):
            continue
        try:
            text = wheel.read(name).decode().replace("\r\n", "\n")
        except UnicodeDecodeError:
            continue
        if is_ordinary_source(text):
            yield SourceFile(f"{package}/{name}", text, is_test=_is_test(path))


def is_ordinary_source(text: str) -> bool:
    """Return whether the file is worth learning from.

    Other files are tiny, huge or generated, consist of tables, have a very long line, mention a
    copyleft licence, or are not valid Python.
    """
    longest = max(map(len, text.splitlines()), default=0)
    header = text[:HEADER_CHARS]
    return (
        MIN_FILE_CHARS <= len(text) <= MAX_FILE_CHARS
        and longest <= MAX_LINE_CHARS
        and not GENERATED.search(header)
        and not mentions_copyleft(header)
        and _literal_share(text) <= MAX_LITERAL_SHARE
    )


def drop_copies(files: Iterable[SourceFile]) -> Iterator[SourceFile]:
    """Yield the files. If several files differ only in white space, yield only the first."""
    digests = set()
    for file in files:
        digest = hashlib.sha256(" ".join(file.text.split()).encode()).digest()
        if digest not in digests:
            digests.add(digest)
            yield file


class HeldOutFilter:
    """Finds copies and near copies of held-out files, and files that contain a part of one."""

    def __init__(self, held_out: Sequence[SourceFile]) -> None:
        self._shingles = frozenset[int]().union(*(_hash_shingles(file.text) for file in held_out))

    def has_shared_text(self, file: SourceFile) -> bool:
        shingles = _hash_shingles(file.text)
        num_shared = len(shingles & self._shingles)
        return num_shared > MAX_SHARED_SHINGLES or num_shared > MAX_SHARED_SHARE * len(shingles)


def _hash_shingles(text: str) -> frozenset[int]:
    """Return the hash of each shingle. Indentation and blank lines do not count."""
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line]
    runs = ("\n".join(lines[i : i + SHINGLE_LINES]) for i in range(len(lines) - SHINGLE_LINES + 1))
    return frozenset(hash(run) for run in runs if len(run) >= MIN_SHINGLE_CHARS)


def _literal_share(text: str) -> float:
    """Return the share of lines that are assignments of a collection or of a call's result.

    Only assignments at the top level of the file count. The share is 1 if the text is not valid
    Python.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return 1.0
    num_lines = 0
    for node in body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if isinstance(value, ast.List | ast.Dict | ast.Set | ast.Tuple | ast.Call):
            num_lines += (node.end_lineno or node.lineno) - node.lineno + 1
    return num_lines / max(1, text.count("\n"))


def _is_test(path: PurePosixPath) -> bool:
    is_test_module = path.name.startswith(("test_", "conftest")) or path.name.endswith("_test.py")
    return is_test_module or not (TEST_FOLDERS | {"testing"}).isdisjoint(path.parts)
