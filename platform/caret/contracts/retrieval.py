"""Retrieval messages between gateways and workers: files to index, queries and results.

The messages contain customers' code. So each one is sealed (caret.contracts.sealed_message), and
none stays in Redis for long: an entry of a stream for at most MAX_AGE_S, and a gateway's list until
MAX_AGE_S after its last result.

    caret:retrieval:files              stream  field `sealed`: a FileUpload
    caret:retrieval:queries            stream  field `sealed`: a SnippetQuery
    caret:retrieval:results:<gateway>  list    sealed SnippetResult; the gateway dequeues them

A message may be lost if Redis or a worker stops. The gateway sends the file or the query again with
a later request.
"""

from typing import Final

import msgspec

from caret.contracts.sealed_message import MessageSealer

FILES: Final = "caret:retrieval:files"
QUERIES: Final = "caret:retrieval:queries"
MAX_AGE_S: Final = 60
MAX_FILES_QUEUED: Final = 512  # of at most MAX_FILE_CHARS each; the oldest are dropped first
MAX_QUERIES_QUEUED: Final = 1_024
MAX_RESULTS_QUEUED: Final = 256  # for one gateway

# Longer files are not indexed: they are seldom written by hand.
MAX_FILE_CHARS: Final = 50_000
MAX_QUERY_CHARS: Final = 1_500
MAX_SNIPPETS: Final = 8  # in a result
# Each write to a stream deletes entries older than this, and the stream expires after this time
# without a write. So an entry lives at most twice this time, which is MAX_AGE_S.
TRIM_AGE_MS: Final = MAX_AGE_S * 1000 // 2


class RetrievalScope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The holder and the repository of files. Only queries with the same scope find the files."""

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


class RetrievalSealer(MessageSealer):
    def __init__(self, root_secret: bytes) -> None:
        super().__init__(root_secret, purpose="retrieval")


def build_results_key(gateway: str) -> str:
    """Return the Redis key of the list from which the gateway dequeues results."""
    return f"caret:retrieval:results:{gateway}"
