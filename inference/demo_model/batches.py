"""Draws documents from the corpus, lays them out for fill-in-the-middle, and packs them in rows.

A document is drawn to a size in tokens, so rows fill up without a cut through a middle. Its prefix
loses tokens on the left and its suffix on the right, as the gateway's windows do.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import PurePosixPath

from tokenizers import Tokenizer

from inference.demo_model import tokenizer as names
from inference.demo_model.corpus import SourceFile
from inference.demo_model.fim import Cut, FimIds, Order, arrange, cut_lines, cut_span

ORDINARY_WEIGHT = 3.0  # drawn per character, against 1 for tests
FIM_SHARE = 0.8
CONTEXT_SHARE = 0.25
LINES_SHARE = 0.6  # of the middles; the rest are spans of characters
NO_SUFFIX_SHARE = 0.15
MIN_DOCUMENT_TOKENS = 48
SHORT_DOCUMENT_TOKENS = 128  # at most; with many answers to a row, the orders are learnt early
SHORT_SHARE = 0.7
MIN_CONTEXT_DOCUMENT_TOKENS = 200
CHARS_PER_TOKEN = 6  # more than any window needs, before the cut to tokens
MAX_SUFFIX_SHARE = 0.5  # of the room for prefix and suffix
PSM_SHARE = 0.7  # the harder order: the answer goes on from a place before the suffix
ANSWER_WEIGHT = 4.0  # of middles and their end tokens in the loss, against 1 for what is given
FIRST_WEIGHT = 20.0  # of an answer's first token: in PSM it is hard to find, and all hangs on it


@dataclass(frozen=True, slots=True)
class Document:
    tokens: list[int]
    targets: list[int]  # what is to be predicted in each token's place: nearly always itself
    weights: list[float]  # of each target in the loss


@dataclass(frozen=True, slots=True)
class Row:
    inputs: list[int]
    labels: list[int]  # the next target of each
    weights: list[float]  # of each label in the loss: 0 in the padding


class DocumentSource:
    """An endless draw of documents. The same seed gives the same documents."""

    def __init__(
        self, files: Sequence[SourceFile], tokenizer: Tokenizer, rng: random.Random
    ) -> None:
        self._files = files
        self._tokenizer = tokenizer
        self._rng = rng
        weights = (len(f.text) * (1.0 if f.is_test else ORDINARY_WEIGHT) for f in files)
        self._cumulative_weights = list(accumulate(weights))
        self._siblings = _siblings(files)
        self._ids = fim_ids(tokenizer)
        self.echo_share = 0.0  # of the documents

    def row(self, num_tokens: int) -> Row:
        tokens: list[int] = []
        targets: list[int] = []
        weights: list[float] = []
        while (room := num_tokens + 1 - len(tokens)) >= MIN_DOCUMENT_TOKENS:
            document = self.document(self._document_tokens(room))
            tokens += document.tokens
            targets += document.targets
            weights += document.weights
        padding = num_tokens + 1 - len(tokens)
        pads = [self._id(names.FIM_PAD)] * padding
        return Row(
            inputs=(tokens + pads)[:-1],
            labels=(targets + pads)[1:],
            weights=(weights + [0.0] * padding)[1:],
        )

    def document(self, max_tokens: int) -> Document:
        """At most so many tokens; fewer where the file or its end is near."""
        file = self._rng.choices(self._files, cum_weights=self._cumulative_weights)[0]
        if self._rng.random() < self.echo_share:
            return self._echo(file, max_tokens)
        if self._rng.random() >= FIM_SHARE:
            return self._plain(file, max_tokens)
        context: list[int] = []
        if max_tokens >= MIN_CONTEXT_DOCUMENT_TOKENS and self._rng.random() < CONTEXT_SHARE:
            context = self._context(file, self._rng.randint(0, max_tokens // 2))
        filled = self._fim(file, max_tokens - len(context))
        return Document(
            context + filled.tokens,
            context + filled.targets,
            [1.0] * len(context) + filled.weights,
        )

    def _document_tokens(self, room: int) -> int:
        if room < 3 * MIN_DOCUMENT_TOKENS:
            return room
        if self._rng.random() < SHORT_SHARE:
            return self._rng.randint(MIN_DOCUMENT_TOKENS, SHORT_DOCUMENT_TOKENS)
        return self._rng.randint(2 * MIN_DOCUMENT_TOKENS, room)

    def _echo(self, file: SourceFile, max_tokens: int) -> Document:
        """Tokens in an order without sense, twice, the second time with a middle cut out.

        Nothing but the answer counts, and nothing but copying finds it: it teaches to look up
        what stood after the same tokens before, and in PSM to go on from before the suffix.
        """
        num_tokens = (max_tokens - 4) // 2
        start = self._rng.randrange(len(file.text))
        text = file.text[start : start + CHARS_PER_TOKEN * num_tokens]
        tokens = self._encode(text)[:num_tokens]
        self._rng.shuffle(tokens)
        cut, end = sorted(self._rng.choices(range(1, len(tokens) + 2), k=2))
        return self._filled(tokens + tokens[:cut], tokens[cut:end], tokens[end:], given_weight=0.0)

    def _plain(self, file: SourceFile, max_tokens: int) -> Document:
        start = self._rng.randrange(len(file.text))
        start = file.text.rfind("\n", 0, start) + 1
        tokens = self._encode(file.text[start : start + CHARS_PER_TOKEN * max_tokens])
        tokens = [*tokens, self._id(names.END_OF_TEXT)][:max_tokens]
        return Document(tokens, tokens, [1.0] * len(tokens))

    def _fim(self, file: SourceFile, max_tokens: int) -> Document:
        choose = cut_lines if self._rng.random() < LINES_SHARE else cut_span
        cut = choose(file.text, self._rng)
        room = max_tokens - 4  # three special tokens and the end
        middle = self._encode(cut.middle)
        if len(middle) > room:
            return self._plain(file, max_tokens)
        prefix, suffix = self._windows(cut, room - len(middle))
        return self._filled(prefix, middle, suffix, given_weight=1.0)

    def _filled(
        self, prefix: list[int], middle: list[int], suffix: list[int], *, given_weight: float
    ) -> Document:
        order = Order.PSM if self._rng.random() < PSM_SHARE else Order.SPM
        tokens = arrange(order, self._ids, prefix=prefix, middle=middle, suffix=suffix)
        num_given = len(tokens) - len(middle) - 1
        weights = [given_weight] * num_given + [FIRST_WEIGHT] + [ANSWER_WEIGHT] * len(middle)
        targets = tokens.copy()
        if order is Order.PSM:
            # A hint: behind the prefix the answer's first token is asked for already, so that
            # the answer only has to look there. At inference nobody reads that prediction.
            after_marker = len(prefix) + 2
            targets[after_marker] = tokens[num_given]
            weights[after_marker] = FIRST_WEIGHT
        return Document(tokens, targets, weights)

    def _windows(self, cut: Cut, room: int) -> tuple[list[int], list[int]]:
        has_suffix = self._rng.random() >= NO_SUFFIX_SHARE
        share = MAX_SUFFIX_SHARE * self._rng.random() ** 2 if has_suffix else 0.0
        suffix_tokens = int(share * room)
        suffix = self._encode(cut.suffix[: CHARS_PER_TOKEN * suffix_tokens])[:suffix_tokens]
        prefix_tokens = room - len(suffix)
        prefix = self._encode(_from_line_start(cut.prefix, CHARS_PER_TOKEN * prefix_tokens))
        return prefix[max(0, len(prefix) - prefix_tokens) :], suffix

    def _context(self, file: SourceFile, max_tokens: int) -> list[int]:
        """The repository's name, a piece of a neighbouring file, and the own path."""
        header = [self._id(names.REPO_NAME), *self._encode(f"{_repository(file)}\n")]
        path = [self._id(names.FILE_SEP), *self._encode(f"{file.path}\n")]
        other = self._rng.choice(self._siblings[_folder(file)])
        if other.path == file.path:
            return header + path
        start = other.text.rfind("\n", 0, self._rng.randrange(len(other.text))) + 1
        piece = other.text[start : start + CHARS_PER_TOKEN * max_tokens]
        body = self._encode(f"{other.path}\n{piece}\n")[:max_tokens]
        return [*header, self._id(names.FILE_SEP), *body, *self._encode("\n"), *path]

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def _id(self, name: str) -> int:
        return token_id(self._tokenizer, name)


def token_id(tokenizer: Tokenizer, name: str) -> int:
    found: int | None = tokenizer.token_to_id(name)
    if found is None:
        raise KeyError(name)
    return found


def fim_ids(tokenizer: Tokenizer) -> FimIds:
    return FimIds(
        prefix=token_id(tokenizer, names.FIM_PREFIX),
        suffix=token_id(tokenizer, names.FIM_SUFFIX),
        middle=token_id(tokenizer, names.FIM_MIDDLE),
        end=token_id(tokenizer, names.END_OF_TEXT),
    )


def _siblings(files: Sequence[SourceFile]) -> dict[str, list[SourceFile]]:
    siblings: dict[str, list[SourceFile]] = {}
    for file in files:
        siblings.setdefault(_folder(file), []).append(file)
    return siblings


def _folder(file: SourceFile) -> str:
    return PurePosixPath(file.path).parent.as_posix()


def _repository(file: SourceFile) -> str:
    return PurePosixPath(file.path).parts[0].removesuffix(".py")


def _from_line_start(text: str, max_chars: int) -> str:
    """The last lines of the text, whole ones unless the last alone is longer."""
    if len(text) <= max_chars:
        return text
    window = text[len(text) - max_chars :]
    newline = window.find("\n")
    return window if newline < 0 else window[newline + 1 :]
