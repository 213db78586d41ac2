"""What retrieval has found for a file: parts of other files of its repository."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Snippet:
    path: str
    text: str
    score: float  # similarity, 0 to 1; snippets come in descending order of it
