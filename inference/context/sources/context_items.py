"""What stands in a prompt besides the text around the cursor: the repository's name, other files by
their outlines, and what retrieval has found; each under its path, in the family's own format."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from inference.completion.request import CompletionRequest
from inference.completion.segment import SegmentKind, SegmentTokens
from inference.completion.snippet import Snippet
from inference.context.prompt.prompt_encoder import PromptEncoder
from inference.context.sources.ranking import Ranking, rank

MAX_SNIPPET_TOKENS: Final = 300
# Of a source that fits only in part, fewer tokens than this tell nothing.
MIN_PART_TOKENS: Final = 32


@dataclass(frozen=True, slots=True)
class ContextItem:
    path: str
    token_ids: list[int]  # its header included


@dataclass(frozen=True, slots=True)
class ContextItems:
    """Best first."""

    repository: list[int]  # its header
    files: list[ContextItem]
    snippets: list[ContextItem]
    current: list[int]  # the header of the cursor's own file

    @property
    def num_header_tokens(self) -> int:
        return len(self.repository) + len(self.current)

    def fit_budget(self, *, files: int, snippets: int) -> "ContextItems":
        """What fits in so many tokens of each."""
        return ContextItems(
            repository=self.repository,
            files=list(fit_items(self.files, max_tokens=files)),
            snippets=list(fit_items(self.snippets, max_tokens=snippets)),
            current=self.current,
        )

    def lay_out(self, *, is_sorted: bool) -> list[SegmentTokens]:
        """By path, so that each stays where it is; or the best last, nearest to the cursor."""
        if not (self.files or self.snippets or self.repository):
            return []  # nothing to tell the own file from
        groups = [(SegmentKind.FILES, self.files), (SegmentKind.SNIPPETS, self.snippets)]
        bodies = [
            SegmentTokens(kind, source.token_ids)
            for kind, group in (groups if is_sorted else groups[::-1])
            for source in (_sorted(group) if is_sorted else group[::-1])
        ]
        repository = SegmentTokens(SegmentKind.REPOSITORY, self.repository)
        return [repository, *bodies, SegmentTokens(SegmentKind.PATH, self.current)]


def build_file_items(
    request: CompletionRequest, encode: PromptEncoder, *, ranking: Ranking
) -> Iterator[ContextItem]:
    """Best first, each made when it is asked for."""
    for file in rank(request.files, ranking, request.prefix, encode.score_file):
        if token_ids := encode.encode_file(file):
            yield ContextItem(file.path, token_ids)


def build_snippet_items(
    snippets: Sequence[Snippet], encode: PromptEncoder
) -> Iterator[ContextItem]:
    """Best first."""
    for snippet in snippets:
        if token_ids := encode.encode_snippet(snippet, max_tokens=MAX_SNIPPET_TOKENS):
            yield ContextItem(snippet.path, token_ids)


def fit_items(sources: Iterable[ContextItem], *, max_tokens: int) -> Iterator[ContextItem]:
    """The first that fit, the last of them perhaps in part; no more are made than that."""
    for source in sources:
        part = source.token_ids[:max_tokens]
        if len(part) < min(len(source.token_ids), MIN_PART_TOKENS):
            return
        yield ContextItem(source.path, part)
        max_tokens -= len(part)
        if max_tokens <= 0:
            return


def num_tokens(sources: Iterable[ContextItem]) -> int:
    return sum(len(source.token_ids) for source in sources)


def _sorted(sources: Sequence[ContextItem]) -> list[ContextItem]:
    return sorted(sources, key=lambda source: (source.path, source.token_ids))
