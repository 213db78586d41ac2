"""Retrieval's messages between the planes: files to index, questions, and what was found.

They hold customers' code, so all of a message is sealed (caret.contracts.sealed_message), and none
stays in Redis for longer than MAX_AGE_S:

    caret:retrieval:files            stream  field `sealed`: a FileUpload
    caret:retrieval:queries        stream  field `sealed`: a Question
    caret:retrieval:results:<gateway>  list    sealed Found; the gateway takes them out

A message may be lost on the way (Redis or a worker that ends): the gateway sends it again with a
later request.
"""

from typing import Final

import msgspec

from caret.contracts.sealed_message import MessageSealer

FILES: Final = "caret:retrieval:files"
QUESTIONS: Final = "caret:retrieval:queries"
MAX_AGE_S: Final = 60
MAX_FILES_QUEUED: Final = 512  # of MAX_FILE_CHARS each; the oldest go first
MAX_QUESTIONS_QUEUED: Final = 1_024
MAX_FOUND_QUEUED: Final = 256  # of one gateway

MAX_FILE_CHARS: Final = 50_000  # longer ones are seldom written by hand
MAX_QUESTION_CHARS: Final = 1_500
MAX_SNIPPETS: Final = 8  # in an answer
STREAM_MS: Final = MAX_AGE_S * 1000 // 2  # so that it is MAX_AGE_S at most


class RetrievalScope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose files these are; nobody else finds them."""

    holder: str  # strict isolation: the user or service key; "": all of the tenant
    repository: str  # its name, never empty


class FileUpload(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="file"):
    scope: RetrievalScope
    path: str
    text: str


class SnippetQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="question"):
    question_id: str
    gateway: str  # names the list to answer to: 32 hex digits
    scope: RetrievalScope
    path: str  # the current file: none of its own parts is wanted
    text: str  # around the cursor


class SnippetMatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    text: str
    score: float  # similarity, 0 to 1


class SnippetResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="found"):
    question_id: str
    snippets: tuple[SnippetMatch, ...]  # in descending order of score, MAX_SNIPPETS at most


Message = FileUpload | SnippetQuery | SnippetResult


class Sealer(MessageSealer):
    def __init__(self, root_secret: bytes) -> None:
        super().__init__(root_secret, purpose="retrieval")


def answers_key(gateway: str) -> str:
    """Of the list from which the gateway takes its answers."""
    return f"caret:retrieval:results:{gateway}"
