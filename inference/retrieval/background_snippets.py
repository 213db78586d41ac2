"""Snippets for a request from the cache, while newer ones are queried in the background."""

from collections.abc import Iterator
from typing import Final

from caret.contracts.content_exclusion import is_indexing_allowed
from caret.contracts.retrieval import MAX_FILE_CHARS, MAX_QUERY_CHARS, RetrievalScope
from inference.completion.request import AdmittedRequest, CompletionRequest
from inference.completion.snippet import Snippet
from inference.context.redaction.redact import (
    MAX_KEY_CHARS,
    drop_rest_of_private_key,
    ends_in_private_key,
    redact_private_keys,
)
from inference.retrieval.send_queue import OutgoingMessage, SendQueue
from inference.retrieval.snippet_cache import FileKey, SnippetCache

# Maximum lengths of two parts of a query. Text after the cursor improves the results.
_IMPORTS_CHARS: Final = 300
_SUFFIX_CHARS: Final = 300


class BackgroundSnippets:
    """A SnippetSource that takes microseconds and never waits."""

    def __init__(self, cache: SnippetCache, queue: SendQueue) -> None:
        self._cache = cache
        self._queue = queue

    def find(self, admitted: AdmittedRequest) -> tuple[Snippet, ...]:
        """Return cached snippets. Queue a query and the request's files if they are due."""
        policy = admitted.principal.snapshot.policy
        request = admitted.request
        if not _is_about_a_file(request) or not is_indexing_allowed(
            policy, repository=request.repository
        ):
            return ()
        key = _build_file_key(admitted, request.path)
        if self._queue.is_due(key, is_query=True):
            self._enqueue(admitted, key, _build_query(request), is_query=True)
        self._enqueue_files(admitted)
        return self._cache.find(key, policy)

    def _enqueue_files(self, admitted: AdmittedRequest) -> None:
        for path, text in _iterate_texts(admitted.request):
            key = _build_file_key(admitted, path)
            # This check comes first, because joining the parts of the current file takes longer.
            if self._queue.is_due(key, is_query=False):
                self._enqueue(admitted, key, "".join(text), is_query=False)

    def _enqueue(
        self, admitted: AdmittedRequest, key: FileKey, text: str, *, is_query: bool
    ) -> None:
        principal = admitted.principal
        self._queue.enqueue(
            OutgoingMessage(
                key=key,
                tenant_id=principal.snapshot.tenant_id,
                scope=RetrievalScope(holder=principal.cache_partition, repository=key.repository),
                is_query=is_query,
                text=text,
            )
        )


def _is_about_a_file(request: CompletionRequest) -> bool:
    """Return whether the request has a file. Raw prompts and chats have none."""
    return bool(request.path) and not request.is_raw and not request.messages


def _iterate_texts(request: CompletionRequest) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield path and text (in parts) of the files for the index, the current file first.

    Skip files longer than MAX_FILE_CHARS.
    """
    if len(request.prefix) + len(request.suffix) <= MAX_FILE_CHARS:
        yield request.path, (request.prefix, request.suffix)
    for file in request.files:
        if file.path and file.path != request.path and len(file.text) <= MAX_FILE_CHARS:
            yield file.path, (file.text,)


def _build_query(request: CompletionRequest) -> str:
    """Return the text around the cursor, without private keys.

    If the prefix is too long for a query, the text begins with the file's imports. Private keys are
    removed before the text is cut: without its header, the rest of a key is not recognized.
    """
    before = redact_private_keys(request.prefix[-(MAX_QUERY_CHARS + MAX_KEY_CHARS) :])
    after = request.suffix
    if ends_in_private_key(request.prefix):
        after = drop_rest_of_private_key(request.prefix, after)
    after = redact_private_keys(after[: _SUFFIX_CHARS + MAX_KEY_CHARS])[:_SUFFIX_CHARS]
    max_before = MAX_QUERY_CHARS - len(after)
    if len(before) <= max_before or not request.imports:
        return before[-max_before:] + after
    imports = " ".join(request.imports)[:_IMPORTS_CHARS] + "\n"
    return imports + before[-(max_before - len(imports)) :] + after


def _build_file_key(admitted: AdmittedRequest, path: str) -> FileKey:
    return FileKey(admitted.principal.namespace, admitted.request.repository, path)
