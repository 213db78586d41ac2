"""The training files as one array of token IDs, with the position of each file in it.

The files on disk:

    tokens.bin      the token IDs (16-bit little-endian)
    files.tsv       group, repository, path and number of tokens of each file
    tokenizer.json
    held_out.json   the texts of the files for validation, by path
    manifest.json   the SHA-256 of the other files, by name
"""

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath

import numpy
from numpy.typing import NDArray
from tokenizers import Tokenizer

from inference.demo_model.corpus import SourceFile

Tokens = NDArray[numpy.uint16]
HELD_OUT = "held_out.json"
FILE_NAMES = ("tokens.bin", "files.tsv", "tokenizer.json", HELD_OUT)  # those in the manifest


class Group(StrEnum):
    LIBRARY = "library"  # the standard library
    LIBRARY_TESTS = "library_tests"
    PACKAGES = "packages"
    PACKAGE_TESTS = "package_tests"


class CorpusError(ValueError):
    """The folder does not contain a complete corpus."""


@dataclass(frozen=True, slots=True)
class TokenFile:
    group: Group
    repository: str  # its name
    path: str  # within the repository
    start: int  # index of its first token in the corpus
    end: int  # index after its last token

    @property
    def folder(self) -> tuple[str, str]:
        """The repository and the path of the folder in it."""
        return self.repository, PurePosixPath(self.path).parent.as_posix()

    def __len__(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class TokenCorpus:
    tokens: Tokens
    files: tuple[TokenFile, ...]


def encode(
    sources: Iterable[tuple[Group, str, SourceFile]],
    tokenizer: Tokenizer,
    *,
    max_tokens: float = math.inf,
) -> TokenCorpus:
    """Encode the files in order, up to the first one that does not fit into `max_tokens`.

    Each source is a file's group, its repository and the file. The file's path must be relative to
    the repository.
    """
    parts: list[Tokens] = []
    files: list[TokenFile] = []
    start = 0
    for group, repository, file in sources:
        ids = numpy.array(tokenizer.encode(file.text, add_special_tokens=False).ids, numpy.uint16)
        if start + len(ids) > max_tokens:
            break
        parts.append(ids)
        files.append(TokenFile(group, repository, file.path, start, start + len(ids)))
        start += len(ids)
    return TokenCorpus(numpy.concatenate(parts), tuple(files))


def save(
    corpus: TokenCorpus, tokenizer: Tokenizer, held_out: Iterable[SourceFile], folder: Path
) -> None:
    """Write the corpus. The manifest is written last, so a folder that has one is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    corpus.tokens.astype("<u2").tofile(folder / "tokens.bin")
    lines = [f"{f.group}\t{f.repository}\t{f.path}\t{len(f)}\n" for f in corpus.files]
    (folder / "files.tsv").write_text("".join(lines))
    tokenizer.save(str(folder / "tokenizer.json"))
    texts = {file.path: file.text for file in held_out}
    (folder / HELD_OUT).write_text(json.dumps(texts, indent=1) + "\n")
    digests = {name: _hash_file(folder / name) for name in FILE_NAMES}
    (folder / "manifest.json").write_text(json.dumps(digests, indent=1) + "\n")


def load(folder: Path) -> TokenCorpus:
    """Check and load the corpus. Raises CorpusError."""
    check(folder)
    tokens = numpy.fromfile(folder / "tokens.bin", "<u2").astype(numpy.uint16, copy=False)
    files = []
    start = 0
    for line in (folder / "files.tsv").read_text().splitlines():
        group, repository, path, length = line.split("\t")
        files.append(TokenFile(Group(group), repository, path, start, start + int(length)))
        start += int(length)
    return TokenCorpus(tokens, tuple(files))


def load_held_out(folder: Path) -> tuple[SourceFile, ...]:
    """Return the files for validation. Corpora of older versions have none."""
    path = folder / HELD_OUT
    texts = json.loads(path.read_text()) if path.exists() else {}
    return tuple(SourceFile(name, text, is_test=False) for name, text in texts.items())


def check(folder: Path) -> None:
    """Check every file against the SHA-256 of the manifest.

    Raises CorpusError.
    """
    manifest = folder / "manifest.json"
    if not manifest.exists():
        raise CorpusError(f"{folder} contains no corpus: run inference.demo_model.dataset.build.")
    for name, digest in json.loads(manifest.read_text()).items():
        path = folder / name
        if not path.exists() or _hash_file(path) != digest:
            raise CorpusError(f"{path} is missing or damaged: build or copy the corpus again.")


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
