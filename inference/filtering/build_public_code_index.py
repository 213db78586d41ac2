"""`manage.py index_public_code FOLDER --to FILE`: builds the index of public code.

FOLDER contains repositories. Files are read if their names show that they are source code. The
hashes are sorted in parts (runs), which are kept on disk and merged at the end. So the folder may
be larger than memory. About 2 MB of text are read in a second. The index is about half as large as
the text.
"""

import argparse
import heapq
import json
import os
import sys
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import groupby, islice
from pathlib import Path
from typing import BinaryIO, Final

from caret.foundation.parsing.grammars import grammar_of
from inference.filtering.fingerprints import (
    WINDOW_CHARS,
    WINNOW_HASHES,
    remove_white_space,
    window_hashes,
    winnow,
)
from inference.filtering.public_code_index import HASH_BYTES, HEADER, MAGIC, VERSION

MAX_FILE_BYTES: Final = 1024 * 1024  # larger files are skipped: they are probably generated code
RUN_HASHES: Final = 4_000_000  # hashes sorted at once: 32 MB on disk, ten times as much in memory
_HASHES_AT_ONCE: Final = 64 * 1024  # hashes read or written at once
_SKIPPED_FOLDERS: Final = frozenset({".git", "node_modules", ".venv", "__pycache__"})
EXIT_USAGE: Final = 2


def main(argv: list[str]) -> int:
    """Write the index and print its size. Return the exit status. Raises OSError."""
    options = _make_parser().parse_args(argv)
    if not options.folder.is_dir():
        sys.stderr.write(f"caret: {options.folder} is not a folder.\n")
        return EXIT_USAGE
    num_files, num_hashes = write_index(options.folder, options.to)
    if options.json:
        sys.stdout.write(json.dumps({"num_files": num_files, "num_hashes": num_hashes}) + "\n")
        return 0
    sys.stdout.write(
        f"{num_files} files, {num_hashes} hashes: {options.to}\n"
        f"Start gateways with CARET_PUBLIC_CODE_INDEX={options.to.resolve()}.\n"
    )
    return 0


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="manage.py index_public_code",
        description="Build an index of public code. Completions are compared with it for "
        "tenants whose policy withholds public code.",
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="folder with repositories")
    parser.add_argument("--to", type=Path, required=True, metavar="FILE", help="the index")
    parser.add_argument(
        "--json", action="store_true", help="print the numbers of files and hashes as JSON"
    )
    return parser


def write_index(folder: Path, to: Path, *, run_hashes: int = RUN_HASHES) -> tuple[int, int]:
    """Write the index atomically. Return the numbers of files and hashes. Raises OSError.

    `run_hashes`: the maximum number of hashes in a run.
    """
    num_files = 0

    def iterate_hashes() -> Iterator[int]:
        nonlocal num_files
        for text in _iterate_source_texts(folder):
            num_files += 1
            yield from winnow(window_hashes(remove_white_space(text)))

    part_file = to.with_name(f"{to.name}.part")
    with ExitStack() as stack:
        runs = []
        remaining_hashes = iterate_hashes()
        while run := sorted(set(islice(remaining_hashes, run_hashes))):
            runs.append(stack.enter_context(tempfile.TemporaryFile()))
            array("Q", run).tofile(runs[-1])  # "Q": unsigned integers of eight bytes
            runs[-1].seek(0)
        sorted_hashes = heapq.merge(*map(_read_run, runs))
        with part_file.open("wb") as file:
            # `groupby` drops duplicates: several runs can contain the same hash.
            num_hashes = _write_index(file, (hash_ for hash_, _ in groupby(sorted_hashes)))
    part_file.replace(to)
    return num_files, num_hashes


def _write_index(file: BinaryIO, hashes: Iterator[int]) -> int:
    file.write(bytes(HEADER.size))  # room for the header, which needs the number of hashes
    num_hashes = 0
    while part := array("Q", islice(hashes, _HASHES_AT_ONCE)):
        part.tofile(file)
        num_hashes += len(part)
    file.seek(0)
    file.write(HEADER.pack(MAGIC, VERSION, WINDOW_CHARS, WINNOW_HASHES, num_hashes))
    return num_hashes


def _read_run(file: BinaryIO) -> Iterable[int]:
    while data := file.read(_HASHES_AT_ONCE * HASH_BYTES):
        part = array("Q")
        part.frombytes(data)
        yield from part


def _iterate_source_texts(folder: Path) -> Iterator[str]:
    """Yield the texts of source files.

    Large files are skipped. Symbolic links are skipped, too: they may lead outside the folder.
    """
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS)
        for name in sorted(names):
            path = Path(parent, name)
            if grammar_of("", name) is None or path.is_symlink() or not path.is_file():
                continue
            if path.stat().st_size <= MAX_FILE_BYTES:
                yield path.read_text(encoding="utf-8", errors="replace")
