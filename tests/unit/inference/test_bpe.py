"""The BPE encoder produces the same tokens as the tokenizers library, or is not used."""

import json
import sysconfig
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as HfTokenizer

from inference.context.tokenization.bpe import Encode, make_bpe_encoder
from inference.context.tokenization.tokenizer import Tokenizer
from tests.fakes.cpu_guard import cpu_guard

DEMO = Path(__file__).parents[3] / "inference" / "demo_model" / "weights" / "tokenizer.json"
QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Both map bytes to characters. Only the first also splits a text into words, as GPT-2 does.
BYTE_LEVEL = pre_tokenizers.ByteLevel(add_prefix_space=False)
BYTE_LEVEL_UNSPLIT = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


def demo() -> HfTokenizer:
    """Return the demonstration tokenizer."""
    return HfTokenizer.from_file(str(DEMO))


# The next three functions return the demonstration tokenizer with the pre-tokenizer of another
# model.
def as_qwen() -> HfTokenizer:
    tokenizer = demo()
    split = pre_tokenizers.Split(Regex(QWEN), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, BYTE_LEVEL_UNSPLIT])
    tokenizer.normalizer = normalizers.NFC()
    return tokenizer


def as_starcoder() -> HfTokenizer:
    tokenizer = demo()
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, BYTE_LEVEL])
    return tokenizer


def as_gpt_2() -> HfTokenizer:
    tokenizer = demo()
    tokenizer.pre_tokenizer = BYTE_LEVEL
    return tokenizer


def change_tokenizer(change: Callable[[dict[str, Any]], object]) -> HfTokenizer:
    """Return the demonstration tokenizer with one property changed."""
    description = json.loads(demo().to_str())
    change(description)
    return HfTokenizer.from_str(json.dumps(description))


def require_bpe_encoder(tokenizer: HfTokenizer) -> Encode:
    encode = make_bpe_encoder(tokenizer)
    assert encode is not None
    return encode


# Each tokenizer of the tokenizers library, with our encoder for it.
TOKENIZERS = {
    make_tokenizer.__name__: (make_tokenizer(), require_bpe_encoder(make_tokenizer()))
    for make_tokenizer in (demo, as_qwen, as_starcoder, as_gpt_2)
}
# The beginnings of some modules of the standard library.
CODE = [
    path.read_text(errors="replace")[:20_000]
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[::6]
]
# Besides random characters, texts often contain characters that pre-tokenizers treat specially.
TEXTS = st.text(
    st.one_of(st.sampled_from("abers' \t\r\n\u00a0\u3000\u20281٣!(.<|>é漢ſ😀"), st.characters()),
    max_size=80,
)


@pytest.mark.parametrize("name", TOKENIZERS)
@given(TEXTS)
def test_any_text_gets_the_tokens_of_the_library(name: str, text: str) -> None:
    tokenizer, encode = TOKENIZERS[name]
    tokenizer.encode_special_tokens = True  # the text of a marker is then ordinary text
    text = text.encode("utf-8", "replace").decode()  # without surrogates

    assert encode(text) == tokenizer.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("name", TOKENIZERS)
def test_code_gets_the_tokens_of_the_library(name: str) -> None:
    tokenizer, encode = TOKENIZERS[name]

    for text in CODE:
        assert encode(text) == tokenizer.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("name", TOKENIZERS)
def test_the_joined_texts_of_two_tokens_get_the_tokens_of_the_library(name: str) -> None:
    tokenizer, encode = TOKENIZERS[name]
    # Every seventh token, without the first 256, which are single bytes.
    token_texts = [tokenizer.decode([token_id]) for token_id in range(256, 4_000, 7)]

    # Each text with the next one, and the last text with the first one.
    for first, second in zip(token_texts, token_texts[1:] + token_texts[:1], strict=True):
        text = first + second
        assert encode(text) == tokenizer.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("letters", [" ", "\n", "a", "!", "\t \n", " \r", "\u3000", "ſ'S"])
def test_a_long_repetitive_text_takes_linear_time(name: str, letters: str) -> None:
    _, encode = TOKENIZERS[name]

    with cpu_guard():
        encode(letters * (500_000 // len(letters)) + "x")


def test_decomposed_letters_are_composed_if_the_models_tokenizer_does_so() -> None:
    tokenizer, encode = TOKENIZERS["as_qwen"]
    decomposed = unicodedata.normalize("NFD", "café")

    assert encode(decomposed) == encode("café") == tokenizer.encode(decomposed).ids


# Each of these functions changes a tokenizer in a way that the encoder does not support.
def _reversed_merges(description: dict[str, Any]) -> None:
    description["model"]["merges"].reverse()


def _token_without_merge(description: dict[str, Any]) -> None:
    description["model"]["ignore_merges"] = True
    description["model"]["merges"].pop()


def _ordinary_marker(description: dict[str, Any]) -> None:
    description["added_tokens"][0]["special"] = False


def _lower_case(description: dict[str, Any]) -> None:
    description["normalizer"] = {"type": "Lowercase"}


def _dropout(description: dict[str, Any]) -> None:
    description["model"]["dropout"] = 0.1


def _space_before_text(description: dict[str, Any]) -> None:
    description["pre_tokenizer"]["pretokenizers"][-1]["add_prefix_space"] = True


def _merged_with_next(description: dict[str, Any]) -> None:
    description["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "MergedWithNext"


@pytest.mark.parametrize(
    "change",
    [
        _reversed_merges,
        _token_without_merge,
        _ordinary_marker,
        _lower_case,
        _dropout,
        _space_before_text,
        _merged_with_next,
    ],
)
def test_a_tokenizer_with_an_unsupported_feature_has_no_bpe_encoder(
    change: Callable[[dict[str, Any]], object],
) -> None:
    assert make_bpe_encoder(change_tokenizer(change)) is None


@pytest.mark.parametrize(
    "tokenizer",
    [
        HfTokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]")),
        HfTokenizer(models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")])),
    ],
)
def test_a_tokenizer_that_is_not_byte_level_has_no_bpe_encoder(tokenizer: HfTokenizer) -> None:
    assert make_bpe_encoder(tokenizer) is None


def test_a_token_that_no_merge_makes_is_never_produced() -> None:
    def remove_last_merge(description: dict[str, Any]) -> None:
        description["model"]["merges"].pop()

    tokenizer = change_tokenizer(remove_last_merge)
    last_id = max(json.loads(demo().to_str())["model"]["vocab"].values())
    text = demo().decode([last_id])

    token_ids = require_bpe_encoder(tokenizer)(text)

    assert token_ids == tokenizer.encode(text).ids
    assert last_id not in token_ids


def test_tool_call_markers_are_ordinary_text_unless_the_prompt_is_raw() -> None:
    marker_id = 4_096  # the demonstration tokenizer has the IDs below

    def add_marker(description: dict[str, Any]) -> None:
        marker = dict(description["added_tokens"][0], id=marker_id, special=False)
        description["added_tokens"].append(marker | {"content": "<tool_call>"})

    tokenizer = Tokenizer(change_tokenizer(add_marker))

    assert marker_id not in tokenizer.encode("a <tool_call> b")
    assert marker_id in tokenizer.encode_raw("a <tool_call> b")
