"""A byte-level BPE of 4,096 tokens, with the names of Qwen's special tokens.

A line break and the indentation after it are one piece. So the word after them has the same tokens,
whether the editor or the model writes the indentation. Each digit is a separate token.
"""

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY_TOKENS = 4096

END_OF_TEXT = "<|endoftext|>"
FIM_PREFIX = "<|fim_prefix|>"
FIM_SUFFIX = "<|fim_suffix|>"
FIM_MIDDLE = "<|fim_middle|>"
FIM_PAD = "<|fim_pad|>"
REPO_NAME = "<|repo_name|>"
FILE_SEP = "<|file_sep|>"
SPECIAL_TOKENS = (
    END_OF_TEXT,
    FIM_PREFIX,
    FIM_SUFFIX,
    FIM_MIDDLE,
    FIM_PAD,
    REPO_NAME,
    FILE_SEP,
    "<|im_start|>",
    "<|im_end|>",
)

# The text is split into these pieces. No token has parts of two pieces.
PIECE = (
    r"[\r\n]+[ \t]*"  # line breaks with the indentation after them
    r"|[ \t]{2,}"  # indentation if the text begins in mid-line
    r"|[^\r\n\p{L}\p{N}]?\p{L}+"  # a word with the character before it: .append
    r"|\p{N}"  # a digit
    r"| ?[^\s\p{L}\p{N}]+"  # punctuation with the space before it
    r"|\s+"  # other white space
)


def train_tokenizer(texts: Iterable[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECE), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_TOKENS,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=24,  # bytes
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer
