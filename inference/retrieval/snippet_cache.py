"""What retrieval has found for a place, for a while.

Rules:
1. Memory only, and never longer than LIFETIME_S.
2. A place belongs to a namespace (tenant, epoch, in strict isolation the user): nobody else's
   request looks there, and a purge leaves it behind.
3. Nothing comes out that the policy does not allow at that moment.
"""

from dataclasses import dataclass, field
from typing import Final

from caret.contracts.content_exclusion import is_excluded, is_indexing_allowed
from caret.contracts.policy import TenantPolicy
from caret.foundation.clock import Clock
from inference.completion.snippet import Snippet
from inference.retrieval.tenant_lru import TenantLru

LIFETIME_S: Final = 600.0
MAX_PLACES: Final = 1_000  # of 8 snippets of 3,000 characters at most


@dataclass(frozen=True, slots=True)
class FileKey:
    """A file in which somebody types."""

    namespace: str
    repository: str
    path: str

    @property
    def scope(self) -> tuple[str, str]:
        return self.namespace, self.repository


@dataclass(slots=True)
class _CachedSnippets:
    snippets: tuple[Snippet, ...]
    until_s: float
    # What was allowed under the last policy that asked: policies are replaced, never changed.
    policy: TenantPolicy | None = None
    allowed: tuple[Snippet, ...] = field(default=())


class SnippetCache:
    """One event loop uses it. Of a tenant's places the least recently used goes first."""

    def __init__(self, clock: Clock, *, max_places: int = MAX_PLACES) -> None:
        self._clock = clock
        self._entries = TenantLru[FileKey, _CachedSnippets](max_items=max_places)

    def find(self, place: FileKey, policy: TenantPolicy) -> tuple[Snippet, ...]:
        entry = self._entries.get(place)
        if entry is None:
            return ()
        self._entries.touch(place)
        if entry.until_s <= self._clock.monotonic_s():
            self._entries.remove(place)
            return ()
        if entry.policy is not policy:
            entry.policy, entry.allowed = policy, _allowed(place, entry.snippets, policy)
        return entry.allowed

    def store(self, place: FileKey, snippets: tuple[Snippet, ...]) -> None:
        self._entries.set(place, _CachedSnippets(snippets, self._clock.monotonic_s() + LIFETIME_S))

    def evict_expired(self) -> None:
        """Also what nobody asks for any more."""
        now_s = self._clock.monotonic_s()
        for place in [place for place, entry in self._entries.items() if entry.until_s <= now_s]:
            self._entries.remove(place)


def _allowed(
    place: FileKey, snippets: tuple[Snippet, ...], policy: TenantPolicy
) -> tuple[Snippet, ...]:
    repository = place.repository
    if not is_indexing_allowed(policy, repository=repository):
        return ()
    return tuple(
        each for each in snippets if not is_excluded(policy, repository=repository, path=each.path)
    )
