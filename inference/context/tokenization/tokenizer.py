"""A model's own tokenizer, with the functions that the assemble stage needs."""

import json
import re
from bisect import bisect_left
from itertools import accumulate, chain, islice, product
from pathlib import Path
from string import ascii_lowercase
from typing import Final

from tokenizers import Tokenizer as HfTokenizer
from tokenizers import models

from caret.foundation.environment import BadSetting
from inference.context.prompt.model_formats.model_families import ALL_MARKERS
from inference.context.tokenization.bpe import make_bpe_encoder
from inference.context.tokenization.split_points import AFTER_NEWLINE, BEFORE_NEWLINE, SplitRule

_MAX_WORDS: Final = 2_000  # in the library's word cache
# Filler words are this stem and three letters, which is enough for 17,576 different words. The
# cache may skip words that the vocabulary contains. So the stem is a text that no vocabulary
# contains.
_FILLER_STEM: Final = "qxjzvkwq"
_FILLER_LETTERS: Final = 3


def prefill_word_cache(tokenizer: HfTokenizer) -> None:
    """Fill the library's word cache. Takes about 30 ms.

    A full cache accepts no more words, so it never stores words of tenants. Words are encoded one
    at a time, because the cache skips words that arrive at the same time.
    """
    model = tokenizer.model
    if not isinstance(model, models.BPE | models.Unigram):
        return  # other models have no cache
    model._clear_cache()
    model._resize_cache(_MAX_WORDS)
    # A vocabulary begins with the most frequent tokens. Some do not decode to one whole word.
    for token_id in range(min(2 * _MAX_WORDS, tokenizer.get_vocab_size())):
        tokenizer.encode(tokenizer.decode([token_id]), add_special_tokens=False)
    letters = product(ascii_lowercase, repeat=_FILLER_LETTERS)
    for filler in islice(letters, 2 * _MAX_WORDS):  # in case the vocabulary was too small
        tokenizer.encode(_FILLER_STEM + "".join(filler), add_special_tokens=False)


# The first rule that does not change the sample's tokens is used.
_SPLIT_RULES: Final = (AFTER_NEWLINE, BEFORE_NEWLINE)
_LINES_SAMPLE: Final = (
    "import os\n\n\nclass A(B):\n    x = {'a': 1,\n         'b': 2}\n\n    def f(self, n=10):  \n"
    "\t\tif n == 3:\n\t\t\treturn [n,\n                    # ö, 漢字;\n            ]\r\n  \r\n"
    '        y = "text"; z = n + 42\n        }\n  /* c */ end\n\n  \n    );\n'
)
_WORD_END: Final = re.compile(r"\w\Z")
# Match a word only as a whole: starting at each of its letters would take quadratic time.
_LAST_WORD: Final = re.compile(r"(?: |(?<!\w))\w++\Z")
_MARKER: Final = re.compile(r"<[^<>\s]+>")  # an added token of this form counts as a marker
# Longer than any word being typed, with room for characters that a tokenizer joins to it.
_MAX_WORD_CHARS: Final = 512


class Tokenizer:
    """Converts text to token IDs. Text can become a special token only in raw prompts."""

    def __init__(self, tokenizer: HfTokenizer) -> None:
        # Two copies, because `encode_special_tokens` applies to the whole tokenizer. `_raw` encodes
        # the text of a marker as the marker, and `_plain` encodes it as ordinary text.
        self._raw = tokenizer
        self._plain = HfTokenizer.from_str(_declare_markers_special(tokenizer.to_str()))
        # The library's name for: encode the text of a special token as ordinary text.
        self._plain.encode_special_tokens = True
        for hf_tokenizer in (self._raw, self._plain):
            hf_tokenizer.no_truncation()
            hf_tokenizer.no_padding()
            prefill_word_cache(hf_tokenizer)
        # None: use the library's own encoder.
        self._encode_by_bpe = make_bpe_encoder(self._plain)
        self._split_rule = self._find_line_split()
        self._num_bytes_by_id = _count_bytes_by_id(self._plain)
        self._pre_tokenizer = tokenizer.pre_tokenizer

    def get_token_id(self, token: str) -> int | None:
        """Return the ID of a token; None: the vocabulary lacks the token."""
        token_id: int | None = self._plain.token_to_id(token)
        return token_id

    def encode(self, text: str) -> list[int]:
        """Encode a text in which markers count as ordinary text."""
        return self.encode_each([text])[0]

    def split_lines(self, text: str) -> list[str]:
        """Split into lines that can be encoded separately; the whole text if impossible."""
        return [text] if self._split_rule is None else self._split_rule.split(text)

    def find_last_line_start(self, text: str) -> int:
        """Return the start of the last line of `split_lines`."""
        return 0 if self._split_rule is None else self._split_rule.last_start(text)

    def find_first_line_end(self, text: str) -> int:
        """Return the end of the first line of `split_lines`."""
        return len(text) if self._split_rule is None else self._split_rule.first_end(text)

    @property
    def has_line_splits(self) -> bool:
        """Return whether `split_lines` can split texts. If not, a text is encoded in one piece."""
        return self._split_rule is not None

    def split_word(self, line: str) -> tuple[str, str]:
        """Return the line without the word at its end, and that word; "" if it ends with no word.

        The cut is at a point where the tokenizer never joins two characters. The model can then
        write any continuation of the word with its usual tokens.
        """
        tail = line[-_MAX_WORD_CHARS:]
        if not _WORD_END.search(tail):
            return line, ""
        word_start = self._last_piece_start(tail)
        if not word_start and len(tail) < len(line):
            return line, ""  # users do not type such long words
        start = len(line) - len(tail) + word_start
        return line[:start], line[start:]

    def _last_piece_start(self, line: str) -> int:
        """Return the start of the last piece that the tokenizer encodes separately.

        If the pre-tokenizer is missing or does not split the line, return the start of the word at
        the line's end, with the space before it.
        """
        if self._pre_tokenizer is not None:
            pieces = self._pre_tokenizer.pre_tokenize_str(_replace_surrogates(line))
            if len(pieces) > 1:
                start: int = pieces[-1][1][0]  # a piece is (text, (start, end))
                return start
        match = _LAST_WORD.search(line)
        return match.start() if match else 0

    def encode_each(self, texts: list[str]) -> list[list[int]]:
        """Encode several texts, on several cores if that helps."""
        if self._encode_by_bpe is not None:
            return [self._encode_by_bpe(_replace_surrogates(text)) for text in texts]
        return _encode_batch(self._plain, texts)

    def encode_lines(self, lines: list[str]) -> list[list[int]]:
        """Encode like `encode_each`, but faster for consecutive lines of ASCII text.

        The library encodes such lines in one piece, in two thirds of the time.
        """
        if self._encode_by_bpe is not None:
            return self.encode_each(lines)
        text = "".join(lines)
        # The quick way needs ASCII text that splits into exactly these lines.
        if not text.isascii() or self.split_lines(text) != lines or not self.has_line_splits:
            return self.encode_each(lines)
        token_ids = self.encode(text)
        # Index i: the number of bytes in the first i tokens.
        ends = list(accumulate(map(self._num_bytes_by_id.__getitem__, token_ids), initial=0))
        if ends[-1] != len(text):
            return self.encode_each(lines)
        encoded, start, num_bytes = [], 0, 0
        for line in lines:
            num_bytes += len(line)
            end = bisect_left(ends, num_bytes, start)
            if ends[end] != num_bytes:  # a token crosses the end of the line
                return self.encode_each(lines)
            encoded.append(token_ids[start:end])
            start = end
        return encoded

    def encode_raw(self, text: str) -> list[int]:
        """Encode a text in which markers count as markers."""
        return _encode_batch(self._raw, [text])[0]

    def _find_line_split(self) -> SplitRule | None:
        sample_token_ids = self.encode(_LINES_SAMPLE)
        for rule in _SPLIT_RULES:
            parts = self.encode_each(rule.split(_LINES_SAMPLE))
            if list(chain.from_iterable(parts)) == sample_token_ids:
                return rule
        return None


def _count_bytes_by_id(tokenizer: HfTokenizer) -> dict[int, int]:
    """Return the number of bytes of each token in ASCII text, by token ID.

    The result is wrong for tokenizers that are not based on bytes, so callers must check the sum.
    """
    return {token_id: len(token) for token, token_id in tokenizer.get_vocab().items()}


def _declare_markers_special(tokenizer_json: str) -> str:
    """Return the tokenizer's description, in which all markers are special tokens.

    Some models declare markers of fill-in-the-middle or tool calls as ordinary tokens. These would
    count as markers wherever a customer's file contains them.
    """
    description = json.loads(tokenizer_json)
    for token in description["added_tokens"]:
        content = token["content"]
        is_marker = content in ALL_MARKERS or _MARKER.fullmatch(content) is not None
        token["special"] = token["special"] or is_marker
    return json.dumps(description)


def _encode_batch(tokenizer: HfTokenizer, texts: list[str]) -> list[list[int]]:
    # The "fast" variant keeps no character offsets: 1.9 ms instead of 2.3 for 3,000 tokens.
    encodings = tokenizer.encode_batch_fast(
        [_replace_surrogates(t) for t in texts], add_special_tokens=False
    )
    return [encoding.ids for encoding in encodings]


def _replace_surrogates(text: str) -> str:
    """Replace unpaired surrogates, which the tokenizer rejects."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def load_tokenizer(source: str) -> Tokenizer:
    """Load a tokenizer from a folder with tokenizer.json, or by a name on Hugging Face's hub.

    Raises BadSetting.
    """
    file = Path(source) / "tokenizer.json"
    try:
        if Path(source).is_dir():
            return Tokenizer(HfTokenizer.from_file(str(file)))
        return Tokenizer(HfTokenizer.from_pretrained(source))
    except Exception as error:  # the library raises bare Exception
        raise BadSetting(f"The tokenizer {source} cannot be loaded: {error}.") from error
