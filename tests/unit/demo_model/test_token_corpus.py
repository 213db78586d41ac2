"""The corpus for training, saved as tokens, with a manifest of its files."""

from pathlib import Path

import pytest

from inference.demo_model.token_corpus import (
    HELD_OUT,
    CorpusError,
    Group,
    encode,
    load,
    load_held_out,
    save,
)
from tests.unit.demo_model.corpora import FILES, SHORT_FILE, small_corpus, small_tokenizer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(small_corpus(), small_tokenizer(), [SHORT_FILE], tmp_path)
    return tmp_path


def test_loading_restores_tokens_and_files(folder: Path) -> None:
    loaded = load(folder)

    assert loaded.files == small_corpus().files
    assert loaded.tokens.tolist() == small_corpus().tokens.tolist()


def test_the_files_for_validation_are_saved_with_the_corpus(folder: Path) -> None:
    assert load_held_out(folder) == (SHORT_FILE,)


def test_a_corpus_of_an_older_version_has_no_files_for_validation(folder: Path) -> None:
    (folder / HELD_OUT).unlink()

    assert load_held_out(folder) == ()


def test_decoding_a_file_restores_its_text() -> None:
    corpus = small_corpus()
    file = corpus.files[1]

    assert small_tokenizer().decode(corpus.tokens[file.start : file.end].tolist()) == FILES[1].text


def test_a_corpus_with_a_token_limit_has_only_the_first_files() -> None:
    whole = small_corpus()
    max_tokens = whole.files[1].end  # room for two files
    files = ((Group.PACKAGES, "package", file) for file in FILES)

    corpus = encode(files, small_tokenizer(), max_tokens=max_tokens)

    assert corpus.files == whole.files[:2]
    assert len(corpus.tokens) == max_tokens


def test_a_damaged_corpus_is_rejected(folder: Path) -> None:
    tokens = folder / "tokens.bin"
    tokens.write_bytes(tokens.read_bytes()[:-2])

    with pytest.raises(CorpusError, match=r"tokens\.bin is missing or damaged"):
        load(folder)


def test_an_unfinished_corpus_is_rejected(folder: Path) -> None:
    (folder / "manifest.json").unlink()

    with pytest.raises(CorpusError, match="contains no corpus"):
        load(folder)
