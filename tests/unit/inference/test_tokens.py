"""Long texts are encoded in parts, and nobody can tell."""

import inspect
import os
from argparse import ArgumentParser
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from caret.foundation.environment import BadSetting
from inference.context.tokens import Tokens, load_tokens

DEMO_WEIGHTS = Path(__file__).parents[3] / "inference" / "demo_model" / "weights"
CODE = inspect.getsource(ArgumentParser)


@pytest.fixture
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)


@pytest.mark.usefixtures("four_cores")
@pytest.mark.parametrize("num_chars", [10, 3_999, 4_000, 9_001, 20_000])
def test_parts_give_the_same_tokens_as_the_whole(num_chars: int) -> None:
    tokens = load_tokens(str(DEMO_WEIGHTS))
    plain = Tokenizer.from_file(str(DEMO_WEIGHTS / "tokenizer.json"))
    text = CODE[:num_chars]

    token_ids = tokens.encode(text)

    assert token_ids == plain.encode(text, add_special_tokens=False).ids


@pytest.mark.usefixtures("four_cores")
def test_a_text_without_seams_is_encoded_whole() -> None:
    tokens = load_tokens(str(DEMO_WEIGHTS))
    text = "x" * 10_000

    token_ids = tokens.encode(text)

    assert len(token_ids) > 0


@pytest.mark.usefixtures("four_cores")
def test_a_tokenizer_that_marks_the_beginning_of_a_text_is_never_given_parts() -> None:
    words = Tokenizer(models.WordLevel({"[UNK]": 0, "▁word": 1, "▁▁word": 2}, unk_token="[UNK]"))
    words.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    words.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    text = " ".join(["word"] * 2_000)

    token_ids = Tokens(words).encode(text)

    assert token_ids == words.encode(text, add_special_tokens=False).ids


def test_a_folder_without_a_tokenizer_is_named() -> None:
    with pytest.raises(BadSetting, match="/nonexistent-folder"):
        load_tokens("/nonexistent-folder")
