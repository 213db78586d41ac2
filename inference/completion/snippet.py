"""Snippets: parts of other files of the repository, found by retrieval."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Snippet:
    path: str  # of the other file
    text: str
    score: float  # similarity, 0 to 1; lists of snippets are in descending order of score
