"""Caches the tenant's policy for each repository, as the gateway sends it. Pure.

It avoids requests that would be rejected, and keeps excluded files off the network. The gateway's
decision is binding: until it has sent a policy, every request but one for a next edit is allowed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from caret_ls.frames import Frame
from caret_ls.mode_choice import CompletionMode

MAX_AGE_S: Final = 300.0
# Gateways of older releases do not know `edit`, and for some models no gateway can serve it.
_PRESUMED_MODES: Final = frozenset(CompletionMode) - {CompletionMode.EDIT}


@dataclass(frozen=True, slots=True)
class EditorPolicy:
    excluded_globs: tuple[str, ...] = ()  # globs of paths
    modes: frozenset[str] = _PRESUMED_MODES  # that the policy and the key allow


_ALL_ALLOWED: Final = EditorPolicy()


class PolicyCache:
    """Policies by repository. A callback sends queries; responses arrive as frames."""

    def __init__(self, send_query: Callable[[str], bool]) -> None:
        self._send_query = send_query
        self._policies: dict[str, EditorPolicy] = {}
        self._queried_s: dict[str, float] = {}
        self._unserved_modes: set[CompletionMode] = set()  # the installation has no model for them

    def get(self, repository: str, now_s: float) -> EditorPolicy:
        """Return the known policy, and query it again if it is old."""
        queried_s = self._queried_s.get(repository)
        if (queried_s is None or now_s - queried_s > MAX_AGE_S) and self._send_query(repository):
            self._queried_s[repository] = now_s
        return self._policies.get(repository, _ALL_ALLOWED)

    def update(self, frame: Frame) -> None:
        globs, modes = frame.get("excluded_globs", []), frame.get("modes", _PRESUMED_MODES)
        policy = EditorPolicy(tuple(map(str, globs)), frozenset(map(str, modes)))
        self._policies[str(frame.get("repository", ""))] = policy

    def automatic_modes(self, repository: str, now_s: float) -> frozenset[str]:
        """Return the modes that may be requested automatically: allowed ones that are served."""
        return self.get(repository, now_s).modes - self._unserved_modes

    def mark_unserved(self, mode: str) -> None:
        """Remember that no model serves the mode."""
        self._unserved_modes.add(CompletionMode(mode))

    def on_reconnect(self) -> None:
        self._unserved_modes.clear()
        self.invalidate()

    def invalidate(self) -> None:
        """Query policies again, because the gateway has rejected a request or has changed.

        Known policies apply until then.
        """
        self._queried_s.clear()
