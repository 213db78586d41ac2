"""A model's own tokens, in a sixth of the time: its byte pairs, merged by tiktoken.

Only for tokenizers of which it can be shown that nothing differs; `None` for all others.

- Pieces: one expression cuts the text, the same in both libraries (two arrangements are known).
- Merges: tiktoken joins whichever neighbours make a token of the lowest rank; the model's own
  library those that its list of merges names. Neighbours are joined to a token only when nothing
  has crossed its borders, so all that happens within it happens as if it stood alone. If each token
  alone is encoded as itself, it was made there by its own merge, and both do the same. Tokens that
  are not, come from nowhere, and are left out.

And it remembers no words: how long it takes says nothing of what others have sent.
"""

import json
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, Final

import tiktoken
from tokenizers import Tokenizer, models

Encode = Callable[[str], list[int]]

# What GPT-2's ByteLevel cuts by itself.
_GPT_2: Final = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# The same where each digit was cut off before: white space before a digit ends like a text.
_GPT_2_BEHIND_DIGITS: Final = (
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+"
)
_BYTE_LEVEL: Final = {"type": "ByteLevel", "add_prefix_space": False}
_DIGITS: Final = {"type": "Digits", "individual_digits": True}
_SPLIT: Final = {"type": "Split", "behavior": "Isolated", "invert": False}
_PLAIN_MERGES: Final = ("dropout", "continuing_subword_prefix", "end_of_word_suffix")


def make_bpe_encoder(tokenizer: Tokenizer) -> Encode | None:
    """Encodes as `tokenizer` does texts without added tokens; None when that cannot be shown.

    Takes 3 us for each token of the vocabulary.
    """
    description = json.loads(tokenizer.to_str())
    normalise = _normaliser(description["normalizer"])
    pieces = _pieces(description["pre_tokenizer"])
    ranks = _ranks(description)
    if normalise is None or pieces is None or ranks is None:
        return None
    merge = tiktoken.Encoding(
        "model", pat_str=pieces, mergeable_ranks=ranks, special_tokens={}
    ).encode_ordinary
    return lambda text: merge(text if text.isascii() else normalise(text))


def _normaliser(description: Mapping[str, Any] | None) -> Callable[[str], str] | None:
    """None: one that is not known here."""
    if description is None:
        return lambda text: text
    if description == {"type": "NFC"}:
        return lambda text: unicodedata.normalize("NFC", text)
    return None


def _pieces(description: Mapping[str, Any] | None) -> str | None:
    if description is None:
        return None
    steps = description.get("pretokenizers", [description])
    *before, last = steps
    if not _is(last, _BYTE_LEVEL):
        return None
    if last["use_regex"]:
        if not before:
            return _GPT_2
        return _GPT_2_BEHIND_DIGITS if len(before) == 1 and _is(before[0], _DIGITS) else None
    if len(before) == 1 and _is(before[0], _SPLIT):
        pattern: str | None = before[0]["pattern"].get("Regex")
        return pattern
    return None


def _is(step: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return {name: step.get(name) for name in wanted} == wanted


def _ranks(description: Mapping[str, Any]) -> dict[bytes, int] | None:
    """By what each token stands for, the tokens' numbers; these rise with the ranks of the merges
    that make them, or there are none."""
    model = description["model"]
    if model["type"] != "BPE" or any(model[each] for each in _PLAIN_MERGES):
        return None
    vocabulary: dict[str, int] = model["vocab"]
    made = [vocabulary.get("".join(_pair(merge)), 0) for merge in model["merges"]]
    if made != sorted(made):
        return None
    merge = _merging(description).tokenize
    merges_alone = {
        text: number
        for text, number in vocabulary.items()
        if [token.id for token in merge(text)] == [number]
    }
    special = {token["content"] for token in description["added_tokens"] if token["special"]}
    if len(special) < len(description["added_tokens"]):
        return None  # some are found in any text
    if model["ignore_merges"] and not vocabulary.keys() <= merges_alone.keys() | special:
        return None  # a token that no merges make is taken for a whole piece
    letters = _bytes_by_letter()
    try:
        ranks = {bytes(letters[letter] for letter in text): n for text, n in merges_alone.items()}
    except KeyError:
        return None  # a letter that stands for no byte
    return ranks if all(bytes([byte]) in ranks for byte in range(256)) else None


def _merging(description: Mapping[str, Any]) -> models.Model:
    """The model by its merges alone, and with a memory of its own."""
    model = {**description["model"], "ignore_merges": False}
    tokenizer = Tokenizer.from_str(json.dumps({**description, "model": model}))
    merging: models.Model = tokenizer.model
    return merging


def _pair(merge: str | list[str]) -> list[str]:
    return merge.split(" ") if isinstance(merge, str) else merge


def _bytes_by_letter() -> dict[str, int]:
    """GPT-2's alphabet: each byte as a letter that can be seen, its own where it has one."""
    own = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), 256)]
    others = [byte for byte in range(256) if byte not in own]
    letters = {chr(byte): byte for byte in own}
    return letters | {chr(256 + place): byte for place, byte in enumerate(others)}
