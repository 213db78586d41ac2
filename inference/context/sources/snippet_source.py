"""The port to retrieval: what is known by now of a request's repository; nothing waits for more."""

from typing import Protocol

from inference.completion.request import AdmittedRequest
from inference.completion.snippet import Snippet


class SnippetSource(Protocol):
    def find(self, admitted: AdmittedRequest) -> tuple[Snippet, ...]:
        """In descending order of score. May start looking in the background, for later requests."""


class NullSnippetSource:
    """Where retrieval is not installed."""

    def find(self, _admitted: AdmittedRequest) -> tuple[Snippet, ...]:
        return ()
