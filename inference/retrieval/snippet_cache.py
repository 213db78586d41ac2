"""A cache of the snippets that retrieval found for a file.

Rules:
1. Snippets are kept in memory only, for at most LIFETIME_S.
2. A file key belongs to a cache namespace (Principal.namespace: the tenant, its cache epoch, and in
   strict isolation the user or service key). Requests in other namespaces do not find the file's
   snippets. A new cache epoch of the tenant makes all earlier snippets unreachable.
3. Snippets that the current policy does not allow are never returned.
"""

from dataclasses import dataclass, field
from typing import Final

from caret.contracts.content_exclusion import is_excluded, is_indexing_allowed
from caret.contracts.policy import TenantPolicy
from caret.foundation.clock import Clock
from inference.completion.snippet import Snippet
from inference.retrieval.tenant_lru import TenantLru

LIFETIME_S: Final = 600.0
MAX_ENTRIES: Final = 1_000  # with up to 8 snippets of 3,000 characters each


@dataclass(frozen=True, slots=True)
class FileKey:
    """A file that a user edits."""

    namespace: str  # see Principal.namespace
    repository: str
    path: str

    @property
    def scope(self) -> tuple[str, str]:
        """The namespace and the repository."""
        return self.namespace, self.repository


@dataclass(slots=True)
class _CachedSnippets:
    snippets: tuple[Snippet, ...]
    until_s: float  # monotonic; the entry expires then
    policy: TenantPolicy | None = None  # of the last request; policies are replaced, never modified
    allowed: tuple[Snippet, ...] = field(default=())  # the snippets that this policy allows


class SnippetCache:
    """The snippet cache of one gateway. Used on one event loop only.

    If a tenant has too many files, or if the cache is full, a file is evicted (see tenant_lru.py).
    """

    def __init__(self, clock: Clock, *, max_entries: int = MAX_ENTRIES) -> None:
        self._clock = clock
        self._entries = TenantLru[FileKey, _CachedSnippets](max_items=max_entries)

    def find(self, key: FileKey, policy: TenantPolicy) -> tuple[Snippet, ...]:
        """Return the file's snippets that the policy allows; none if they are not cached."""
        entry = self._entries.get(key)
        if entry is None:
            return ()
        self._entries.touch(key)
        if entry.until_s <= self._clock.monotonic_s():
            self._entries.remove(key)
            return ()
        if entry.policy is not policy:
            entry.policy, entry.allowed = policy, _select_allowed(key, entry.snippets, policy)
        return entry.allowed

    def store(self, key: FileKey, snippets: tuple[Snippet, ...]) -> None:
        self._entries.set(key, _CachedSnippets(snippets, self._clock.monotonic_s() + LIFETIME_S))

    def evict_expired(self) -> None:
        """Remove expired entries, also those that no request needs any more."""
        now_s = self._clock.monotonic_s()
        for key in [key for key, entry in self._entries.items() if entry.until_s <= now_s]:
            self._entries.remove(key)


def _select_allowed(
    key: FileKey, snippets: tuple[Snippet, ...], policy: TenantPolicy
) -> tuple[Snippet, ...]:
    repository = key.repository
    if not is_indexing_allowed(policy, repository=repository):
        return ()
    return tuple(
        snippet
        for snippet in snippets
        if not is_excluded(policy, repository=repository, path=snippet.path)
    )
