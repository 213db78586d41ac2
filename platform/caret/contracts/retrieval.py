"""Retrieval messages between the planes: files to index, queries and results.

They contain customers' code. So each message is sealed (caret.contracts.sealed_message), and none
stays in Redis longer than MAX_AGE_S:

    caret:retrieval:files              stream  field `sealed`: a FileUpload
    caret:retrieval:queries            stream  field `sealed`: a SnippetQuery
    caret:retrieval:results:<gateway>  list    sealed SnippetResult; the gateway dequeues them

A message may be lost if Redis or a worker stops. The gateway sends it again with a later request.
"""

from typing import Final

import msgspec

from caret.contracts.sealed_message import MessageSealer

FILES: Final = "caret:retrieval:files"
QUERIES: Final = "caret:retrieval:queries"
MAX_AGE_S: Final = 60
MAX_FILES_QUEUED: Final = 512  # of MAX_FILE_CHARS each; the oldest are dropped first
MAX_QUERIES_QUEUED: Final = 1_024
MAX_RESULTS_QUEUED: Final = 256  # for one gateway

MAX_FILE_CHARS: Final = 50_000  # longer files are seldom written by hand
MAX_QUERY_CHARS: Final = 1_500
MAX_SNIPPETS: Final = 8  # in a result
STREAM_MS: Final = MAX_AGE_S * 1000 // 2  # an entry lives up to twice as long, so at most MAX_AGE_S


class RetrievalScope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The holder and the repository of files. Only requests with the same scope find the files."""

    holder: str  # in strict isolation, the user or service key; "": the whole tenant
    repository: str  # its name, never empty


class FileUpload(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="file"):
    scope: RetrievalScope
    path: str
    text: str


class SnippetQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="query"):
    query_id: str
    gateway: str  # 32 hex digits that name the list for the results
    scope: RetrievalScope
    path: str  # of the current file, which is left out of the results
    text: str  # the code around the cursor


class SnippetMatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    text: str
    score: float  # similarity, 0 to 1


class SnippetResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="result"):
    query_id: str
    snippets: tuple[SnippetMatch, ...]  # in descending order of score, MAX_SNIPPETS at most


Message = FileUpload | SnippetQuery | SnippetResult


class Sealer(MessageSealer):
    def __init__(self, root_secret: bytes) -> None:
        super().__init__(root_secret, purpose="retrieval")


def build_results_key(gateway: str) -> str:
    """Return the Redis key of the list from which the gateway dequeues results."""
    return f"caret:retrieval:results:{gateway}"
