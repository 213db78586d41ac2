"""The corpus: files of Python's standard library, of which some are held out for validation."""

from pathlib import Path

import pytest

from inference.demo_model.corpus import (
    MIN_FILE_CHARS,
    MIN_HELD_OUT_CHARS,
    SourceFile,
    read_corpus,
    split,
)

TEXT = "value = 1\n" * 300
FILES = [SourceFile(f"package/module_{n}.py", TEXT, is_test=False) for n in range(500)]


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Return an empty folder in place of the Python standard library."""
    return tmp_path


def write_file(library: Path, relative: str, content: bytes = TEXT.encode()) -> None:
    path = library / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def paths_read(library: Path) -> set[str]:
    corpus = read_corpus(library)
    return {file.path for file in (*corpus.training, *corpus.held_out)}


def test_each_file_is_in_exactly_one_part() -> None:
    corpus = split(FILES)

    assert not set(corpus.training) & set(corpus.held_out)
    assert set(corpus.training) | set(corpus.held_out) == set(FILES)


def test_about_four_percent_of_files_are_held_out() -> None:
    assert 10 <= len(split(FILES).held_out) <= 30


def test_a_file_stays_in_its_part_when_other_files_are_removed() -> None:
    held_out = set(split(FILES).held_out)

    assert set(split(FILES[::2]).held_out) == held_out & set(FILES[::2])


def test_tests_are_never_held_out() -> None:
    tests = [SourceFile(file.path, file.text, is_test=True) for file in FILES]

    assert split(tests).held_out == ()


def test_short_files_are_never_held_out() -> None:
    text = "value = 1\n" * 100  # long enough for training
    assert MIN_FILE_CHARS <= len(text) < MIN_HELD_OUT_CHARS
    short = [SourceFile(file.path, text, is_test=False) for file in FILES]

    assert split(short).held_out == ()


@pytest.mark.parametrize(
    "relative",
    [
        "site-packages/django/models.py",
        "encodings/cp037.py",
        "lib2to3/tests/data/fixers.py",
        "config-3.11-x86_64-linux-gnu/python-config.py",
        "_sysconfigdata__linux_x86_64-linux-gnu.py",
    ],
)
def test_tables_packages_and_generated_files_are_left_out(library: Path, relative: str) -> None:
    write_file(library, relative)

    assert paths_read(library) == set()


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe" * 300, b"x = 1\n", b"TABLE = '" + b"x" * 500 + b"'\n"],
    ids=["not UTF-8", "too short", "too long a line"],
)
def test_files_that_are_not_ordinary_source_are_left_out(library: Path, content: bytes) -> None:
    write_file(library, "module.py", content)

    assert paths_read(library) == set()


def test_tests_are_distinguished_from_ordinary_code(library: Path) -> None:
    write_file(library, "json/decoder.py")
    write_file(library, "test/test_json.py")
    write_file(library, "ctypes/test/test_arrays.py")

    corpus = read_corpus(library)

    is_test = {file.path: file.is_test for file in (*corpus.training, *corpus.held_out)}
    assert is_test == {
        "json/decoder.py": False,
        "test/test_json.py": True,
        "ctypes/test/test_arrays.py": True,
    }


def test_line_breaks_are_kept(library: Path) -> None:
    write_file(library, "module.py", TEXT.replace("\n", "\r\n").encode())

    corpus = read_corpus(library)

    (file,) = (*corpus.training, *corpus.held_out)
    assert file.text == TEXT.replace("\n", "\r\n")
