"""The tokenised corpus on disk."""

from pathlib import Path

import pytest

from inference.demo_model.token_corpus import CorpusError, load, save
from tests.unit.demo_model.corpora import FILES, small_corpus, small_tokenizer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(small_corpus(), small_tokenizer(), tmp_path)
    return tmp_path


def test_loading_restores_tokens_and_files(folder: Path) -> None:
    loaded = load(folder)

    assert loaded.files == small_corpus().files
    assert loaded.tokens.tolist() == small_corpus().tokens.tolist()


def test_decoding_a_file_restores_its_text() -> None:
    corpus = small_corpus()
    file = corpus.files[1]

    assert small_tokenizer().decode(corpus.tokens[file.start : file.end].tolist()) == FILES[1].text


def test_a_damaged_corpus_is_rejected(folder: Path) -> None:
    tokens = folder / "tokens.bin"
    tokens.write_bytes(tokens.read_bytes()[:-2])

    with pytest.raises(CorpusError, match=r"tokens\.bin is missing or damaged"):
        load(folder)


def test_an_unfinished_corpus_is_rejected(folder: Path) -> None:
    (folder / "manifest.json").unlink()

    with pytest.raises(CorpusError, match="contains no corpus"):
        load(folder)
