"""The tokenizer library's cache of encoded words contains no words that tenants sent.

Otherwise the time of encoding a word would reveal that another tenant had sent the same word.
`prefill_word_cache` fills the cache completely, so that it stores no further words.
"""

from pathlib import Path

import pytest
from tokenizers import Tokenizer, models

from inference.context.tokenization.tokenizer import prefill_word_cache

DEMO_WEIGHTS = Path(__file__).parents[3] / "inference" / "demo_model" / "weights"
SENT_WORD = "globex_secret_word"


def _is_cached(tokenizer: Tokenizer, word: str) -> bool:
    """Return True if the word is cached: it is encoded as before although the model has changed."""
    before = tokenizer.encode(word).ids
    tokenizer.model.continuing_subword_prefix = "##"
    after = tokenizer.encode(word).ids
    tokenizer.model.continuing_subword_prefix = None
    return before == after


@pytest.fixture
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(DEMO_WEIGHTS / "tokenizer.json"))


def test_the_library_caches_new_words_without_prefilling(tokenizer: Tokenizer) -> None:
    assert _is_cached(tokenizer, SENT_WORD)


def test_a_prefilled_cache_stores_no_new_words(tokenizer: Tokenizer) -> None:
    prefill_word_cache(tokenizer)

    assert not _is_cached(tokenizer, SENT_WORD)


def test_a_prefilled_cache_contains_words_of_the_vocabulary(tokenizer: Tokenizer) -> None:
    prefill_word_cache(tokenizer)

    assert _is_cached(tokenizer, " return")


def test_the_prefilled_cache_of_a_small_vocabulary_stores_no_new_words() -> None:
    letters = {letter: number for number, letter in enumerate("abcdefghijklmnopqrstuvwxyz_")}
    small = Tokenizer(models.BPE(letters, []))

    prefill_word_cache(small)

    assert not _is_cached(small, SENT_WORD)


def test_a_model_without_a_cache_is_unchanged() -> None:
    words = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))

    prefill_word_cache(words)

    assert words.encode("a").ids == [1]
