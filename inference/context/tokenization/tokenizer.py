"""A model's own tokenizer, narrowed to what assembly needs."""

import json
import re
from bisect import bisect_left
from itertools import accumulate, chain
from pathlib import Path
from typing import Final

from tokenizers import Tokenizer as HfTokenizer

from caret.foundation.environment import BadSetting
from inference.context.prompt.model_families import ALL_MARKERS
from inference.context.tokenization.bpe import make_bpe_encoder
from inference.context.tokenization.split_points import AFTER_NEWLINE, BEFORE_NEWLINE, SplitRule
from inference.context.tokenization.word_cache import prefill_word_cache

# The first that changes nothing in the sample is taken.
_SEAMS: Final = (AFTER_NEWLINE, BEFORE_NEWLINE)
_LINES_SAMPLE: Final = (
    "import os\n\n\nclass A(B):\n    x = {'a': 1,\n         'b': 2}\n\n    def f(self, n=10):  \n"
    "\t\tif n == 3:\n\t\t\treturn [n,\n                    # ö, 漢字;\n            ]\r\n  \r\n"
    '        y = "text"; z = n + 42\n        }\n  /* c */ end\n\n  \n    );\n'
)
_WORD_END: Final = re.compile(r"\w\Z")
# A word is taken whole, and from its beginning only: from each of its letters to its end would take
# time that grows with its square.
_LAST_WORD: Final = re.compile(r"(?: |(?<!\w))\w++\Z")
_MARKER: Final = re.compile(r"<[^<>\s]+>")
# As much of a line as any word that is being typed, with some to spare for what a tokenizer joins.
_MAX_WORD_CHARS: Final = 512


class Tokenizer:
    """Text to token ids. Customers' text never becomes a special token; raw prompts may."""

    def __init__(self, tokenizer: HfTokenizer) -> None:
        # Two copies, because the flag is a property of the whole tokenizer.
        self._with_markers = tokenizer
        self._plain = HfTokenizer.from_str(_with_special_markers(tokenizer.to_str()))
        self._plain.encode_special_tokens = True
        for each in (self._with_markers, self._plain):
            each.no_truncation()
            each.no_padding()
            prefill_word_cache(each)
        self._merge = make_bpe_encoder(self._plain)  # None: the library's own way
        self._line_seam = self._find_line_split()
        self._num_bytes = _bytes_by_id(self._plain)
        self._pre_tokenizer = tokenizer.pre_tokenizer

    def get_token_id(self, token: str) -> int | None:
        identifier: int | None = self._plain.token_to_id(token)
        return identifier

    def encode(self, text: str) -> list[int]:
        return self.encode_each([text])[0]

    def split_lines(self, text: str) -> list[str]:
        """Parts that can be encoded apart, a line each; the whole where there are none."""
        return [text] if self._line_seam is None else self._line_seam.split(text)

    def find_last_line_start(self, text: str) -> int:
        """Of the last one of its lines."""
        return 0 if self._line_seam is None else self._line_seam.last_start(text)

    def find_first_line_end(self, text: str) -> int:
        return len(text) if self._line_seam is None else self._line_seam.first_end(text)

    @property
    def has_line_splits(self) -> bool:
        return self._line_seam is not None

    def split_word(self, line: str) -> tuple[str, str]:
        """The line without the word at its end, and that word; "" where it does not end in one.

        Cut where the tokenizer itself never joins two characters: behind that cut the model writes
        any continuation of the word with the tokens that it knows for it.
        """
        end = line[-_MAX_WORD_CHARS:]
        if not _WORD_END.search(end):
            return line, ""
        place = self._last_piece_start(end)
        if not place and len(end) < len(line):
            return line, ""  # nobody types a word of that length
        start = len(line) - len(end) + place
        return line[:start], line[start:]

    def _last_piece_start(self, line: str) -> int:
        if self._pre_tokenizer is not None:
            pieces = self._pre_tokenizer.pre_tokenize_str(_whole(line))
            if len(pieces) > 1:
                start: int = pieces[-1][1][0]
                return start
        found = _LAST_WORD.search(line)
        return found.start() if found else 0

    def encode_each(self, texts: list[str]) -> list[list[int]]:
        """Several texts at once, on several cores where that helps."""
        if self._merge is not None:
            return [self._merge(_whole(text)) for text in texts]
        return _encode(self._plain, texts)

    def encode_lines(self, lines: list[str]) -> list[list[int]]:
        """The same as encode_each; by the library's own way in two thirds of the time where the
        lines are those of an ASCII text, which is then encoded in one piece."""
        if self._merge is not None:
            return self.encode_each(lines)
        text = "".join(lines)
        if not text.isascii() or self.split_lines(text) != lines or not self.has_line_splits:
            return self.encode_each(lines)
        token_ids = self.encode(text)
        # How many bytes they stand for, up to each of them.
        ends = list(accumulate(map(self._num_bytes.__getitem__, token_ids), initial=0))
        encoded, start, num_bytes = [], 0, 0
        for line in lines:
            num_bytes += len(line)
            end = bisect_left(ends, num_bytes, start)
            if ends[-1] != len(text) or ends[end] != num_bytes:
                return self.encode_each(lines)
            encoded.append(token_ids[start:end])
            start = end
        return encoded

    def encode_raw(self, text: str) -> list[int]:
        """Like encode, but markers in the text are markers."""
        return _encode(self._with_markers, [text])[0]

    def _find_line_split(self) -> SplitRule | None:
        whole = self.encode(_LINES_SAMPLE)
        for seam in _SEAMS:
            parts = self.encode_each(seam.split(_LINES_SAMPLE))
            if list(chain.from_iterable(parts)) == whole:
                return seam
        return None


def _bytes_by_id(tokenizer: HfTokenizer) -> dict[int, int]:
    """Of how many bytes of ASCII text each token is made; wrong where it is not made of bytes, so
    to be checked by what the tokens of a text add up to."""
    return {identifier: len(token) for token, identifier in tokenizer.get_vocab().items()}


def _with_special_markers(tokenizer_json: str) -> str:
    """Marks all markers as special: some models list theirs, those of fill-in-the-middle or of tool
    calls, as ordinary tokens, which would be taken for markers wherever a customer's file mentions
    them."""
    description = json.loads(tokenizer_json)
    for token in description["added_tokens"]:
        content = token["content"]
        is_marker = content in ALL_MARKERS or _MARKER.fullmatch(content) is not None
        token["special"] = token["special"] or is_marker
    return json.dumps(description)


def _encode(tokenizer: HfTokenizer, texts: list[str]) -> list[list[int]]:
    # The "fast" variant keeps no character offsets: 1.9 ms instead of 2.3 for 3,000 tokens.
    encodings = tokenizer.encode_batch_fast([_whole(t) for t in texts], add_special_tokens=False)
    return [encoding.ids for encoding in encodings]


def _whole(text: str) -> str:
    """Half of a surrogate pair is no text to the tokenizer."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def load_tokenizer(source: str) -> Tokenizer:
    """From a folder with tokenizer.json, or by a name on the hub. Raises BadSetting."""
    file = Path(source) / "tokenizer.json"
    try:
        if Path(source).is_dir():
            return Tokenizer(HfTokenizer.from_file(str(file)))
        return Tokenizer(HfTokenizer.from_pretrained(source))
    except Exception as error:  # the library raises bare Exception
        raise BadSetting(f"The tokenizer {source} cannot be loaded: {error}.") from error
