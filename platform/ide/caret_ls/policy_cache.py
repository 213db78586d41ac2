"""Caches the tenant's policy for each repository, as the gateway sends it. Pure.

So this server sends no requests that the gateway would reject, and does not send excluded files.
Until the gateway has sent the policy, all requests are allowed except requests for next edits. The
gateway decides about each request again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from caret_ls.frames import Frame
from caret_ls.mode_choice import CompletionMode

MAX_AGE_S: Final = 300.0  # after this time, a policy is queried again
# Without `edit`: older gateways do not know it, and some tenants have no model that serves it.
_PRESUMED_MODES: Final = frozenset(CompletionMode) - {CompletionMode.EDIT}


@dataclass(frozen=True, slots=True)
class EditorPolicy:
    excluded_globs: tuple[str, ...] = ()  # globs of paths that must not be sent
    modes: frozenset[str] = _PRESUMED_MODES  # that the policy and the API key allow


_PRESUMED_POLICY: Final = EditorPolicy()  # until the gateway has sent the policy


class PolicyCache:
    """Policies by the name of the repository. Times are seconds of one monotonic clock."""

    def __init__(self, send_query: Callable[[str], bool]) -> None:
        """`send_query` queries a repository's policy, and returns False if it cannot do so now."""
        self._send_query = send_query
        self._policies: dict[str, EditorPolicy] = {}
        self._queried_s: dict[str, float] = {}  # when each policy was queried
        self._unserved_modes: set[CompletionMode] = set()  # no model serves them for this tenant

    def get(self, repository: str, now_s: float) -> EditorPolicy:
        """Return the known policy, or the presumed one until the gateway has sent the policy.

        If the last query is older than MAX_AGE_S, send another one. Its response is stored later,
        by `update`.
        """
        queried_s = self._queried_s.get(repository)
        if (queried_s is None or now_s - queried_s > MAX_AGE_S) and self._send_query(repository):
            self._queried_s[repository] = now_s
        return self._policies.get(repository, _PRESUMED_POLICY)

    def update(self, frame: Frame) -> None:
        """Store the policy of a `policy` frame."""
        globs, modes = frame.get("excluded_globs", []), frame.get("modes", _PRESUMED_MODES)
        policy = EditorPolicy(tuple(map(str, globs)), frozenset(map(str, modes)))
        self._policies[str(frame.get("repository", ""))] = policy

    def automatic_modes(self, repository: str, now_s: float) -> frozenset[str]:
        """Return the modes that may be requested automatically: allowed, and served by a model."""
        return self.get(repository, now_s).modes - self._unserved_modes

    def mark_unserved(self, mode: str) -> None:
        """Remember that no model serves the mode."""
        self._unserved_modes.add(CompletionMode(mode))

    def on_reconnect(self) -> None:
        """Query each policy again. Forget the unserved modes: the models may have changed."""
        self._unserved_modes.clear()
        self.invalidate()

    def invalidate(self) -> None:
        """Query each policy again at its next use, because it may have changed.

        The known policy applies until the gateway responds.
        """
        self._queried_s.clear()
