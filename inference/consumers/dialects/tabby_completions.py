"""`POST /v1/completions` with `segments`, which Tabby's agent sends. It is never streamed.

The agent cuts off superfluous lines itself. So these requests have the mode fim, in which the text
ends where the model ends it.
"""

from itertools import chain, islice
from typing import Final

import msgspec

from caret.contracts.language_ids import language_of_name
from caret.contracts.policy import Mode
from inference.completion.incoming_request import ContextFile, IncomingRequest, UnvalidatedRequest
from inference.completion.request_trace import RequestTrace
from inference.completion.response_writer import ResponseWriter
from inference.consumers.http.completions import ParsedRequest
from inference.consumers.http.request_bodies import decode
from inference.consumers.http.responses import FullResponseWriter, HttpExchange
from inference.gateway.receive import MAX_FILES

ID_PREFIX: Final = "cmpl-"  # precedes the request ID, here and in the agent's events


class CodeFile(msgspec.Struct, frozen=True):
    filepath: str
    body: str  # a part of the file


class Segments(msgspec.Struct, frozen=True):
    prefix: str
    suffix: str | None = None
    filepath: str | None = None
    git_url: str | None = None
    # Each list is in descending order of relevance. A file may be in several lists.
    relevant_snippets_from_changed_files: list[CodeFile] | None = None
    relevant_snippets_from_recently_opened_files: list[CodeFile] | None = None
    declarations: list[CodeFile] | None = None


class TabbyBody(msgspec.Struct, frozen=True):
    segments: Segments
    language: str | None = None


class TabbyChoice(msgspec.Struct, frozen=True):
    text: str
    index: int = 0


class TabbyCompletion(msgspec.Struct, frozen=True):
    id: str
    choices: list[TabbyChoice]


class TabbyResponseEncoder:
    def __init__(self, arrival: IncomingRequest) -> None:
        self._id = f"{ID_PREFIX}{arrival.request_id}"

    def encode_delta(self, text: str, _trace: RequestTrace) -> TabbyCompletion:
        return TabbyCompletion(self._id, [TabbyChoice(text)])

    def encode_end(self, _trace: RequestTrace) -> list[TabbyCompletion]:
        return []  # never called, because nothing is streamed

    def encode_full(self, text: str, trace: RequestTrace) -> TabbyCompletion:
        return self.encode_delta(text, trace)


_decoder: Final = msgspec.json.Decoder(TabbyBody)


def parse_request(body: bytes) -> ParsedRequest:
    """Parse a request. Raises BadRequest."""
    request = decode(_decoder, body)
    segments = request.segments
    draft = UnvalidatedRequest(
        mode=Mode.FIM,
        prefix=segments.prefix,
        suffix=segments.suffix or "",
        path=segments.filepath or "",
        language=language_of_name(request.language or ""),
        repository=_repository_name(segments.git_url or ""),
        files=_to_files(segments),
    )
    return ParsedRequest(protocol="tabby", draft=draft, make_writer=_build_writer)


def _build_writer(http: HttpExchange, arrival: IncomingRequest) -> ResponseWriter:
    return FullResponseWriter(http, TabbyResponseEncoder(arrival), has_outcome_reports=True)


def _repository_name(git_url: str) -> str:
    """Return the repository's name in policies: for `git@example.com:acme/shop.git`, `shop`."""
    return git_url.rstrip("/").removesuffix(".git").replace(":", "/").rpartition("/")[2]


def _to_files(segments: Segments) -> tuple[ContextFile, ...]:
    """Return the first MAX_FILES snippets of the lists, as files without a time.

    `receive` keeps the order of files without a time.
    """
    snippets = chain(
        segments.relevant_snippets_from_changed_files or (),
        segments.relevant_snippets_from_recently_opened_files or (),
        segments.declarations or (),
    )
    first = islice(snippets, MAX_FILES)
    return tuple(ContextFile(file.filepath, file.body, edited_at=0.0) for file in first)
