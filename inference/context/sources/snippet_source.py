"""The port to retrieval. It returns the snippets that it already has: no request waits for more."""

from typing import Protocol

from inference.completion.request import AdmittedRequest
from inference.completion.snippet import Snippet


class SnippetSource(Protocol):
    def find(self, admitted: AdmittedRequest) -> tuple[Snippet, ...]:
        """Return snippets in descending order of score. May start a background search."""


class NullSnippetSource:
    """Finds no snippets. Used if retrieval is disabled."""

    def find(self, _admitted: AdmittedRequest) -> tuple[Snippet, ...]:
        return ()
