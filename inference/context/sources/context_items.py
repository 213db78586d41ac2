"""The context of a prompt besides the text around the cursor.

It consists of the repository's name, pinned files, other files, snippets and definitions. Long
files are replaced by their outlines. Each item has a header with its path, in the format of the
model family.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from inference.completion.request import CompletionRequest
from inference.completion.segment import SegmentKind, SegmentTokens
from inference.completion.snippet import Snippet
from inference.context.prompt.prompt_encoder import PromptEncoder
from inference.context.sources.ranking import Ranking, rank

MAX_SNIPPET_TOKENS: Final = 300  # of a snippet's text, without its header
MAX_DEFINITION_TOKENS: Final = 100  # of a definition's text, without its header
# A truncated item with fewer tokens than this is of no use.
MIN_PART_TOKENS: Final = 32


@dataclass(frozen=True, slots=True)
class ContextItem:
    path: str
    token_ids: list[int]  # including its header


@dataclass(frozen=True, slots=True)
class ContextItems:
    """The context items of a prompt."""

    repository: list[int]  # token IDs of its header
    pinned: list[ContextItem]  # sorted by path, already within their share of the budget
    files: list[ContextItem]  # best first
    snippets: list[ContextItem]  # best first
    definitions: list[ContextItem]  # in the client's order, already within their share
    current: list[int]  # token IDs of the header of the cursor's own file

    @property
    def num_header_tokens(self) -> int:
        return len(self.repository) + len(self.current)

    def fit_budget(self, *, files: int, snippets: int) -> "ContextItems":
        """Return the items. Files and snippets are limited to these numbers of tokens."""
        return ContextItems(
            repository=self.repository,
            pinned=self.pinned,
            files=list(fit_items(self.files, max_tokens=files)),
            snippets=list(fit_items(self.snippets, max_tokens=snippets)),
            definitions=self.definitions,
            current=self.current,
        )

    def lay_out(self, *, is_sorted: bool) -> list[SegmentTokens]:
        """Return the segments before the suffix and the prefix, in the order of the prompt.

        The repository's name and the pinned files come first. They are the same for all users of
        the repository, so that users in one cache namespace share the beginning of their prompts.
        If `is_sorted`, the files follow, and then the snippets, both sorted by path, so that their
        positions are stable. Otherwise the snippets come before the files, both by rank with the
        best one last. Definitions come after them, because the user adds some while typing. The
        header of the cursor's own file is last.
        """
        items = (*self.pinned, *self.files, *self.snippets, *self.definitions)
        if not (items or self.repository):
            return []  # without other items, the cursor's file needs no header
        groups = [(SegmentKind.FILES, self.files), (SegmentKind.SNIPPETS, self.snippets)]
        bodies = [
            SegmentTokens(kind, item.token_ids)
            for kind, group in (groups if is_sorted else groups[::-1])
            for item in (_sort_items(group) if is_sorted else group[::-1])
        ]
        repository = SegmentTokens(SegmentKind.REPOSITORY, self.repository)
        pinned = [SegmentTokens(SegmentKind.PINNED_FILES, item.token_ids) for item in self.pinned]
        definitions = [
            SegmentTokens(SegmentKind.DEFINITIONS, item.token_ids) for item in self.definitions
        ]
        current = SegmentTokens(SegmentKind.PATH, self.current)
        return [repository, *pinned, *bodies, *definitions, current]


def build_pinned_items(
    request: CompletionRequest, encoder: PromptEncoder, *, max_tokens: int
) -> list[ContextItem]:
    """Return the pinned files, sorted by path, without the cursor's own file.

    The client's order and the times of edits do not matter: they may differ between users.
    """
    pinned = [file for file in request.files if file.is_pinned and file.path != request.path]
    encoded = (
        ContextItem(file.path, token_ids)
        for file in sorted(pinned, key=lambda file: (file.path, file.text))
        if (token_ids := encoder.encode_file(file))
    )
    return list(fit_items(encoded, max_tokens=max_tokens))


def build_file_items(
    request: CompletionRequest, encoder: PromptEncoder, *, ranking: Ranking
) -> Iterator[ContextItem]:
    """Yield the files that are not pinned, best first. Each is encoded when it is yielded."""
    # A client may send a pinned file a second time, as an open file.
    pinned_paths = {file.path for file in request.files if file.is_pinned}
    files = [file for file in request.files if file.path not in pinned_paths]
    for file in rank(files, ranking, request.prefix, encoder.score_file):
        if token_ids := encoder.encode_file(file):
            yield ContextItem(file.path, token_ids)


def build_snippet_items(
    snippets: Sequence[Snippet], encoder: PromptEncoder
) -> Iterator[ContextItem]:
    """Yield the snippets, best first."""
    for snippet in snippets:
        if token_ids := encoder.encode_snippet(snippet, max_tokens=MAX_SNIPPET_TOKENS):
            yield ContextItem(snippet.path, token_ids)


def build_definition_items(
    request: CompletionRequest,
    encoder: PromptEncoder,
    *,
    paths_in_prompt: Collection[str],
    max_tokens: int,
) -> list[ContextItem]:
    """Return the definitions in the client's order.

    Definitions of the cursor's own file and of `paths_in_prompt` are left out, because the prompt
    contains them anyway. A definition that does not fit is left out, too: a part of a definition
    says little.
    """
    items: list[ContextItem] = []
    for definition in request.definitions:
        if definition.path == request.path or definition.path in paths_in_prompt:
            continue
        token_ids = encoder.encode_snippet(definition, max_tokens=MAX_DEFINITION_TOKENS)
        if token_ids and len(token_ids) <= max_tokens:
            items.append(ContextItem(definition.path, token_ids))
            max_tokens -= len(token_ids)
    return items


def fit_items(items: Iterable[ContextItem], *, max_tokens: int) -> Iterator[ContextItem]:
    """Yield the first items that fit. The last one may be truncated. Later items are not read."""
    for item in items:
        part = item.token_ids[:max_tokens]
        if len(part) < min(len(item.token_ids), MIN_PART_TOKENS):
            return
        yield ContextItem(item.path, part)
        max_tokens -= len(part)
        if max_tokens <= 0:
            return


def count_tokens(items: Iterable[ContextItem]) -> int:
    return sum(len(item.token_ids) for item in items)


def _sort_items(items: Sequence[ContextItem]) -> list[ContextItem]:
    return sorted(items, key=lambda item: (item.path, item.token_ids))
