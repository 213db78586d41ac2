"""What the tenant's policy says of a repository, as the gateway tells it. Pure.

It spares requests that would be refused, and files their way over the network. What counts is what
the gateway decides: until it has told, everything may be asked.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from caret_ls.frames import Frame

MAX_AGE_S: Final = 300.0
MODE: Final = "inline"


@dataclass(frozen=True, slots=True)
class EditorPolicy:
    excluded: tuple[str, ...] = ()  # globs of paths
    is_allowed: bool = True  # the mode that this server asks for


_ALL_ALLOWED: Final = EditorPolicy()


class PolicyCache:
    """By repository. `ask` sends a question; its answer comes by `update`."""

    def __init__(self, ask: Callable[[str], bool]) -> None:
        self._ask = ask
        self._known: dict[str, EditorPolicy] = {}
        self._asked_s: dict[str, float] = {}

    def get(self, repository: str, now_s: float) -> EditorPolicy:
        """As far as it is known; asks where that is long ago."""
        asked_s = self._asked_s.get(repository)
        if (asked_s is None or now_s - asked_s > MAX_AGE_S) and self._ask(repository):
            self._asked_s[repository] = now_s
        return self._known.get(repository, _ALL_ALLOWED)

    def update(self, frame: Frame) -> None:
        excluded, modes = frame.get("excluded", []), frame.get("modes", [MODE])
        policy = EditorPolicy(tuple(map(str, excluded)), MODE in modes)
        self._known[str(frame.get("repository", ""))] = policy

    def invalidate(self) -> None:
        """The gateway has refused something, or is another one: it is asked again. What is known
        holds until then."""
        self._asked_s.clear()
