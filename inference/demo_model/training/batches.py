"""Draws documents from the corpus, arranges them for fill-in-the-middle, and puts each in a row.

A row contains one document, so that no other document competes for attention. As in the gateway's
prompts, a prefix that is too long loses tokens at its beginning, and a suffix at its end. A short
file is preceded by a piece of a file in the same folder (the context), so that rows have little
padding.
"""

import random
from bisect import bisect
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from tokenizers import Tokenizer

from inference.demo_model import tokenizer as special_tokens
from inference.demo_model.fim import FimIds, TrainingOrder, arrange_document
from inference.demo_model.token_corpus import Group, TokenCorpus, TokenFile
from inference.demo_model.training.cuts import CutKind, Cutter, TokenSpans

MAX_PACKAGE_TOKENS = 1_500_000  # a larger package is drawn as often as one of this size
PLAIN_SHARE = 0.22  # of the documents: a part of a file, without a cut
CONTEXT_SHARE = 0.2  # of the documents of files that are not short: this share has context, too
MIN_CONTEXT_ROW_TOKENS = 512  # shorter rows have no context
NUM_HEADER_TOKENS = 40  # of the repository's name and the paths together, approximately
NUM_SPECIAL_TOKENS = 4  # of a FIM document: three markers and the end token
SHORT_FILE_SHARE = 0.6  # of a row: a file that fills less is short, and always gets context
NO_SUFFIX_SHARE = 0.12  # of the documents with a cut
MAX_SUFFIX_SHARE = 0.5  # of the tokens of prefix and suffix
ORDER_WEIGHTS: Final[Mapping[TrainingOrder, int]] = {  # of the documents with a cut
    TrainingOrder.PSM: 25,
    TrainingOrder.SPM: 65,
    TrainingOrder.SPM_VARIANT_2: 10,
}
CUT_WEIGHTS: Final[Mapping[CutKind, int]] = {  # of the documents with a cut
    CutKind.LINES: 45,
    CutKind.NAME: 20,
    CutKind.SPAN: 20,
    CutKind.BLOCK: 10,
    CutKind.DOCSTRING: 5,
}
# Weights in the loss, against 1 for tokens of prompts (0 in echoes). An answer is a middle and its
# end token.
ANSWER_WEIGHT = 4.0
FIRST_WEIGHT = 10.0  # of an answer's first token, which in PSM is the hardest to find


@dataclass(frozen=True, slots=True)
class TrainingDocument:
    tokens: list[int]
    # What the model should predict in place of each token: nearly always the token itself.
    targets: list[int]
    weights: list[float]  # of each target in the loss


@dataclass(frozen=True, slots=True)
class TrainingRow:
    inputs: list[int]
    labels: list[int]  # for each input, the target in place of the next token
    weights: list[float]  # of each label in the loss: 0 in the padding


@dataclass(frozen=True, slots=True)
class Mixture:
    """The texts that documents are drawn from."""

    group_shares: Mapping[Group, float]  # of the documents, relative to each other
    echo_share: float = 0.0  # of the documents (see _draw_echo_document)
    order: TrainingOrder | None = None  # None: all three orders, and plain documents


class DocumentSource:
    """Draws documents without end. The same seed and mixture give the same documents.

    Callers may replace `mixture` between two documents. At first, all groups have equal shares.
    """

    def __init__(self, corpus: TokenCorpus, tokenizer: Tokenizer, rng: random.Random) -> None:
        self._corpus = corpus
        self._tokenizer = tokenizer
        self._rng = rng
        self._ids = fim_ids(tokenizer)
        self._cutter = Cutter(corpus, tokenizer, rng)
        self._groups = {group: _WeightedFiles(corpus, group) for group in Group}
        self._siblings = _group_by_folder(corpus)
        self.mixture = Mixture({group: 1.0 for group, files in self._groups.items() if files})

    def draw_row(self, num_tokens: int) -> TrainingRow:
        """Return a row of exactly this many inputs and labels, with padding at its end."""
        document = self.draw_document(num_tokens + 1)
        padding = num_tokens + 1 - len(document.tokens)
        pads = [self._token_id(special_tokens.FIM_PAD)] * padding
        return TrainingRow(
            inputs=(document.tokens + pads)[:-1],
            labels=(document.targets + pads)[1:],
            weights=(document.weights + [0.0] * padding)[1:],
        )

    def draw_document(self, max_tokens: int) -> TrainingDocument:
        """Return a document of at most this many tokens.

        It may have fewer, for example if the file is short and has no neighbours.
        """
        file = self._pick_file()
        if self._rng.random() < self.mixture.echo_share:
            return self._draw_echo_document(file, max_tokens)
        if self.mixture.order is None and self._rng.random() < PLAIN_SHARE:
            return self._draw_plain_document(file, max_tokens)
        context = self._draw_context(file, max_tokens)
        fim_document = self._draw_fim_document(file, max_tokens - len(context))
        return TrainingDocument(
            context + fim_document.tokens,
            context + fim_document.targets,
            [1.0] * len(context) + fim_document.weights,
        )

    def _pick_file(self) -> TokenFile:
        shares = self.mixture.group_shares
        group = self._rng.choices(list(shares), list(shares.values()))[0]
        return self._groups[group].draw(self._rng)

    def _draw_echo_document(self, file: TokenFile, max_tokens: int) -> TrainingDocument:
        """Return the same shuffled tokens twice; the middle is a part of the second copy.

        Only the answer has weight in the loss, and the model can find it only by copying. So it
        learns to look up the continuation of the same tokens, and in PSM to continue the prefix
        rather than the suffix.
        """
        num_tokens = (max_tokens - NUM_SPECIAL_TOKENS) // 2
        tokens = self._pick_piece(file, num_tokens)
        self._rng.shuffle(tokens)
        # Both len(tokens) and len(tokens) + 1 stand for the end of the tokens.
        middle_start, end = sorted(self._rng.choices(range(1, len(tokens) + 2), k=2))
        prefix, middle = tokens + tokens[:middle_start], tokens[middle_start:end]
        return self._arrange_document(prefix, middle, tokens[end:], prompt_weight=0.0)

    def _draw_plain_document(self, file: TokenFile, max_tokens: int) -> TrainingDocument:
        """Return a part of the file that begins at a random line."""
        start = file.start + self._rng.randrange(max(1, len(file) - max_tokens // 2))
        start = self._cutter.line_start(file, start)
        tokens = self._corpus.tokens[start : min(file.end, start + max_tokens)].tolist()
        if start + len(tokens) == file.end:
            tokens = [*tokens, self._token_id(special_tokens.END_OF_TEXT)][:max_tokens]
        return TrainingDocument(tokens, tokens, [1.0] * len(tokens))

    def _draw_fim_document(self, file: TokenFile, max_tokens: int) -> TrainingDocument:
        """Return the file with a cut.

        If the middle leaves less than a quarter of the tokens, return a plain document.
        """
        kinds = list(CUT_WEIGHTS)
        kind = self._rng.choices(kinds, list(CUT_WEIGHTS.values()))[0]
        spans = self._cutter.cut(file, kind)
        tokens_left = max_tokens - NUM_SPECIAL_TOKENS - len(spans.middle)
        if tokens_left < max_tokens // 4:
            return self._draw_plain_document(file, max_tokens)
        prefix, suffix = self._cut_windows(file, spans, tokens_left)
        return self._arrange_document(prefix, spans.middle, suffix, prompt_weight=1.0)

    def _arrange_document(
        self, prefix: list[int], middle: list[int], suffix: list[int], *, prompt_weight: float
    ) -> TrainingDocument:
        order = self.mixture.order or self._pick_order()
        tokens = arrange_document(order, self._ids, prefix=prefix, middle=middle, suffix=suffix)
        num_prompt_tokens = len(tokens) - len(middle) - 1
        answer_weights = [FIRST_WEIGHT] + [ANSWER_WEIGHT] * len(middle)
        weights = [prompt_weight] * num_prompt_tokens + answer_weights
        targets = tokens.copy()
        if order is TrainingOrder.PSM:
            # In place of the token after the suffix marker, the target is the answer's first token.
            # So the model computes the continuation of the prefix there, where its attention can
            # find it again when the answer begins. At inference nothing uses that prediction.
            after_marker = len(prefix) + 2  # after the prefix marker, prefix and suffix marker
            targets[after_marker] = tokens[num_prompt_tokens]
            weights[after_marker] = FIRST_WEIGHT
        return TrainingDocument(tokens, targets, weights)

    def _pick_order(self) -> TrainingOrder:
        return self._rng.choices(list(ORDER_WEIGHTS), list(ORDER_WEIGHTS.values()))[0]

    def _cut_windows(
        self, file: TokenFile, spans: TokenSpans, num_tokens: int
    ) -> tuple[list[int], list[int]]:
        """Return a prefix and a suffix of this many tokens together; fewer if the file is short."""
        has_suffix = self._rng.random() >= NO_SUFFIX_SHARE
        # The square makes short suffixes more likely.
        share = MAX_SUFFIX_SHARE * self._rng.random() ** 2 if has_suffix else 0.0
        num_before = spans.start - file.start + len(spans.prefix_end)
        # Tokens that a short text before the cursor leaves go to the suffix, too.
        num_left = num_tokens - num_before if has_suffix else 0
        num_suffix = max(int(share * num_tokens), num_left)
        after = self._corpus.tokens[spans.end : min(file.end, spans.end + num_suffix)].tolist()
        suffix = (spans.suffix_start + after)[:num_suffix]
        num_prefix = num_tokens - len(suffix)
        first = max(file.start, spans.start - num_prefix)
        prefix = self._corpus.tokens[first : spans.start].tolist() + spans.prefix_end
        return prefix[max(0, len(prefix) - num_prefix) :], suffix

    def _draw_context(self, file: TokenFile, max_tokens: int) -> list[int]:
        if max_tokens < MIN_CONTEXT_ROW_TOKENS:
            return []
        if len(file) < SHORT_FILE_SHARE * max_tokens:
            num_missing = max_tokens - len(file) - NUM_HEADER_TOKENS
            return self._build_context_tokens(file, num_missing)
        if self._rng.random() < CONTEXT_SHARE:
            return self._build_context_tokens(file, self._rng.randint(0, max_tokens // 2))
        return []

    def _build_context_tokens(self, file: TokenFile, max_tokens: int) -> list[int]:
        """Return the repository's name, a piece of a neighbouring file, and the file's own path."""
        header = [self._token_id(special_tokens.REPO_NAME), *self._encode(f"{file.repository}\n")]
        path = [self._token_id(special_tokens.FILE_SEP), *self._encode(f"{file.path}\n")]
        sibling = self._rng.choice(self._siblings[file.folder])
        if sibling == file:
            return header + path
        body = self._encode(f"{sibling.path}\n") + self._pick_piece(sibling, max_tokens)
        return [*header, self._token_id(special_tokens.FILE_SEP), *body, *self._encode("\n"), *path]

    def _pick_piece(self, file: TokenFile, max_tokens: int) -> list[int]:
        start = file.start + self._rng.randrange(max(1, len(file) - max_tokens))
        piece: list[int] = self._corpus.tokens[start : min(file.end, start + max_tokens)].tolist()
        return piece

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def _token_id(self, name: str) -> int:
        return token_id(self._tokenizer, name)


class _WeightedFiles:
    """Draws files of a group in proportion to their tokens.

    The share of a package is limited (MAX_PACKAGE_TOKENS).
    """

    def __init__(self, corpus: TokenCorpus, group: Group) -> None:
        self._files = [file for file in corpus.files if file.group is group and len(file)]
        totals: dict[str, int] = {}  # tokens by repository
        for file in self._files:
            totals[file.repository] = totals.get(file.repository, 0) + len(file)
        is_limited = group in (Group.PACKAGES, Group.PACKAGE_TESTS)
        limit = MAX_PACKAGE_TOKENS if is_limited else max(totals.values(), default=0)
        self._cumulative = list(
            accumulate(len(f) * min(1.0, limit / totals[f.repository]) for f in self._files)
        )

    def __bool__(self) -> bool:
        return bool(self._files)

    def draw(self, rng: random.Random) -> TokenFile:
        index = bisect(self._cumulative, rng.random() * self._cumulative[-1])
        return self._files[min(index, len(self._files) - 1)]


def token_id(tokenizer: Tokenizer, name: str) -> int:
    """Return the ID of a special token. Raises KeyError."""
    id_: int | None = tokenizer.token_to_id(name)
    if id_ is None:
        raise KeyError(name)
    return id_


def fim_ids(tokenizer: Tokenizer) -> FimIds:
    return FimIds(
        prefix=token_id(tokenizer, special_tokens.FIM_PREFIX),
        suffix=token_id(tokenizer, special_tokens.FIM_SUFFIX),
        middle=token_id(tokenizer, special_tokens.FIM_MIDDLE),
        end=token_id(tokenizer, special_tokens.END_OF_TEXT),
    )


def _group_by_folder(corpus: TokenCorpus) -> dict[tuple[str, str], list[TokenFile]]:
    siblings: dict[tuple[str, str], list[TokenFile]] = {}
    for file in corpus.files:
        siblings.setdefault(file.folder, []).append(file)
    return siblings
