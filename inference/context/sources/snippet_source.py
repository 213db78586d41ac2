"""The port to retrieval. It returns the snippets that it already has: no request waits for it."""

from typing import Protocol

from inference.completion.request import AdmittedRequest
from inference.completion.snippet import Snippet


class SnippetSource(Protocol):
    def find(self, admitted: AdmittedRequest) -> tuple[Snippet, ...]:
        """Return snippets in descending order of score. May start a background search."""


class NullSnippetSource:
    """Used where retrieval is not installed."""

    def find(self, _admitted: AdmittedRequest) -> tuple[Snippet, ...]:
        return ()
