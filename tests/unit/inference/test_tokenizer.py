"""The tokenizer: it encodes a text line by line, and splits off the last word for token healing.

A text is encoded line by line only if its tokens stay the same.
"""

import inspect
from argparse import ArgumentParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, models, pre_tokenizers
from tokenizers import Tokenizer as HfTokenizer

from caret.foundation.environment import BadSetting
from inference.context.tokenization.tokenizer import Tokenizer, load_tokenizer
from tests.fakes.cpu_guard import cpu_guard

DEMO_WEIGHTS = Path(__file__).parents[3] / "inference" / "demo_model" / "weights"
TOKENIZER = load_tokenizer(str(DEMO_WEIGHTS))
CODE = inspect.getsource(ArgumentParser)

# This tokenizer has no pre-tokenizer, so it does not split a text into pieces.
WITHOUT_PIECES = Tokenizer(HfTokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]")))


def encode_by_line(tokenizer: Tokenizer, text: str) -> list[int]:
    return [token for ids in tokenizer.encode_each(tokenizer.split_lines(text)) for token in ids]


def test_lines_have_the_same_tokens_as_the_whole_text() -> None:
    assert len(TOKENIZER.split_lines(CODE)) > 100
    assert encode_by_line(TOKENIZER, CODE) == TOKENIZER.encode(CODE)


@given(st.text(alphabet="ab1 .:;)\n\t\r'#é", max_size=60))
def test_lines_of_any_text_have_the_same_tokens(text: str) -> None:
    assert encode_by_line(TOKENIZER, text) == TOKENIZER.encode(text)


def test_a_word_after_half_a_surrogate_pair_is_split_off() -> None:
    assert TOKENIZER.split_word("x = '\ud800' + val") == ("x = '\ud800' +", " val")


@given(st.text(alphabet="ab1 .:;)\t'#é漢", max_size=60), st.sampled_from(["val", " val", "x.val"]))
def test_a_long_line_before_a_word_does_not_change_the_split(before: str, word: str) -> None:
    short, long = "read(), " * 2, "read(), " * 200

    prefix, healed = TOKENIZER.split_word(f"{short}{before};{word}")

    assert TOKENIZER.split_word(f"{long}{before};{word}") == (
        long + prefix.removeprefix(short),
        healed,
    )


def test_a_very_long_word_is_not_split_off() -> None:
    line = "a" * 500_000

    with cpu_guard():
        assert TOKENIZER.split_word(line) == (line, "")


@pytest.mark.parametrize("letters", ["😀", "a! ", "a"])
def test_only_the_end_of_a_very_long_line_is_tokenized(letters: str) -> None:
    line = letters * (500_000 // len(letters))

    with cpu_guard():
        for _ in range(20):
            assert WITHOUT_PIECES.split_word(f"{line}!val") == (f"{line}!", "val")
            assert TOKENIZER.split_word(f"{line}! val") == (f"{line}!", " val")


def test_lines_make_up_the_text() -> None:
    assert "".join(TOKENIZER.split_lines(CODE)) == CODE


# The pattern of Qwen and GPT-4. Punctuation includes the line break after it, so lines are split
# after their line breaks.
_QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def make_byte_level_tokenizer(pattern: str) -> HfTokenizer:
    """Return an untrained tokenizer that splits texts at the pattern.

    Each byte is a token, but a colon and a line break after it are one token.
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate(alphabet)}
    newline, colon = "Ċ", ":"  # as a byte-level vocabulary writes them
    vocabulary[colon + newline] = len(vocabulary)
    tokenizer = HfTokenizer(models.BPE(vocabulary, [(colon, newline)]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return tokenizer


def test_lines_are_split_after_a_line_break_that_the_tokenizer_joins_to_a_colon() -> None:
    tokenizer = Tokenizer(make_byte_level_tokenizer(_QWEN_PATTERN))

    lines = tokenizer.split_lines("if a:\n    b\n")

    assert lines == ["if a:\n", "    b\n"]
    assert encode_by_line(tokenizer, CODE) == tokenizer.encode(CODE)


def make_tokenizer_without_split_rule() -> Tokenizer:
    """Return a tokenizer that marks the beginning of a text, so lines cannot be split off."""
    words = HfTokenizer(models.WordLevel({"[UNK]": 0, "▁word": 1, "word": 2}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    return Tokenizer(words)


def test_a_text_is_not_split_if_the_tokenizer_marks_its_beginning() -> None:
    assert make_tokenizer_without_split_rule().split_lines("word\nword\n") == ["word\nword\n"]


def make_library_tokenizer() -> Tokenizer:
    """Return a tokenizer that splits a text in two steps.

    The project's own encoder does not support this, so the library `tokenizers` encodes the text.
    """
    tokenizer = HfTokenizer.from_file(str(DEMO_WEIGHTS / "tokenizer.json"))
    matches_nothing = pre_tokenizers.Split("\0\0", "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([matches_nothing, tokenizer.pre_tokenizer])
    return Tokenizer(tokenizer)


LIBRARY_TOKENIZER = make_library_tokenizer()
TOKENIZERS = {
    "split before line breaks": TOKENIZER,
    "split after line breaks": Tokenizer(make_byte_level_tokenizer(_QWEN_PATTERN)),
    "encoded by the library": LIBRARY_TOKENIZER,
    "without split rule": make_tokenizer_without_split_rule(),
}
ALPHABETS = st.sampled_from(["ab1 .:;)\n\t'#", "a :\n", "a\n\r", "ab \né"])


@pytest.mark.parametrize("name", TOKENIZERS)
@given(data=st.data())
def test_lines_encoded_together_have_the_same_tokens_as_single_lines(
    name: str, data: st.DataObject
) -> None:
    tokenizer = TOKENIZERS[name]
    lines = tokenizer.split_lines(data.draw(st.text(data.draw(ALPHABETS), max_size=60)))
    some_lines = data.draw(st.lists(st.sampled_from(lines), max_size=6))  # in any order, some twice

    assert tokenizer.encode_lines(lines) == tokenizer.encode_each(lines)
    assert tokenizer.encode_lines(some_lines) == tokenizer.encode_each(some_lines)


def test_the_lines_of_a_text_are_encoded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []
    encode_each = LIBRARY_TOKENIZER.encode_each

    def record_and_encode(texts: list[str]) -> list[list[int]]:
        encoded.extend(texts)
        return encode_each(texts)

    monkeypatch.setattr(LIBRARY_TOKENIZER, "encode_each", record_and_encode)

    LIBRARY_TOKENIZER.encode_lines(LIBRARY_TOKENIZER.split_lines(CODE))

    assert encoded == [CODE]


def test_the_error_message_names_a_missing_tokenizer() -> None:
    with pytest.raises(BadSetting, match="/nonexistent-folder"):
        load_tokenizer("/nonexistent-folder")
