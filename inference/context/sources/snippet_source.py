"""The port to retrieval: what is known by now of a request's repository; nothing waits for more."""

from typing import Protocol

from inference.completion.request import Admitted
from inference.completion.snippet import Snippet


class Snippets(Protocol):
    def of(self, admitted: Admitted) -> tuple[Snippet, ...]:
        """In descending order of score. May start looking in the background, for later requests."""


class NoSnippets:
    """Where retrieval is not installed."""

    def of(self, _admitted: Admitted) -> tuple[Snippet, ...]:
        return ()
