"""A tenant's retrieval index: embeddings of the tenant's files, in which snippets are found.

A test sends files and queries as a gateway does. The worker runs only when a test calls it.
"""

import secrets
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.utils import timezone

from caret.contracts.retrieval import (
    FILES,
    MAX_FILES_QUEUED,
    QUERIES,
    TRIM_AGE_MS,
    FileUpload,
    RetrievalScope,
    RetrievalSealer,
    SnippetMatch,
    SnippetQuery,
    SnippetResult,
    build_results_key,
)
from caret.contracts.sealed_message import ADD_SCRIPT, FIELD
from caret.foundation.clock import SystemClock
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.redis_connection import connect_to_redis
from tenants.models import RetrievalChunk
from tenants.policy.document import serialize_policy
from tenants.policy.operations import set_policy
from tenants.policy.queries import find_policy_in_force
from tenants.privacy.retrieval_index.chunk_encryption import ChunkCipher
from tenants.privacy.retrieval_index.embeddings import EmbeddingEngine
from tenants.privacy.retrieval_index.redis_streams import RetrievalStreams
from tenants.privacy.retrieval_index.worker import RunStats, WorkerContext, run_worker
from tests.fakes.embeddings import MODEL, FakeEmbeddings
from tests.fixtures.companies import Company, make_company

SHOP: Final = RetrievalScope(holder="", repository="shop")  # of all users of the tenant


@dataclass(frozen=True, slots=True)
class TenantIndex:
    company: Company
    context: WorkerContext

    def send_file(self, path: str, text: str, *, scope: RetrievalScope = SHOP) -> None:
        add_to_stream(FILES, self.seal(FileUpload(scope=scope, path=path, text=text)))

    def index_file(self, path: str, text: str, *, scope: RetrievalScope = SHOP) -> None:
        self.send_file(path, text, scope=scope)
        self.run_worker()

    def find_snippets(
        self, text: str, *, path: str = "now.py", scope: RetrievalScope = SHOP
    ) -> list[SnippetMatch]:
        """Send a query, run the worker, and return the snippets of the only response."""
        (result,) = self.get_responses(text, path=path, scope=scope)
        return list(result.snippets)

    def get_responses(
        self, text: str, *, path: str = "now.py", scope: RetrievalScope = SHOP
    ) -> list[SnippetResult]:
        """Send a query, run the worker, and return the responses; [] if there is none."""
        query = SnippetQuery(
            query_id=secrets.token_hex(4),
            gateway=secrets.token_hex(16),
            scope=scope,
            path=path,
            text=text,
        )
        add_to_stream(QUERIES, self.seal(query))
        self.run_worker()
        results = self.take_results(query.gateway)
        assert {result.query_id for result in results} <= {query.query_id}
        return results

    def run_worker(self) -> RunStats:
        return run_worker(self.context, max_run_s=60.0)

    def seal(self, message: FileUpload | SnippetQuery) -> bytes:
        return RetrievalSealer(settings.ROOT_SECRET).seal(self.company.tenant_id, message)

    def take_results(self, gateway: str) -> list[SnippetResult]:
        """Remove the results that wait for this gateway from Redis, and return them."""
        sealer = RetrievalSealer(settings.ROOT_SECRET)
        sealed_results: Any = connect_to_redis().lpop(build_results_key(gateway), 100) or []
        results = [sealer.open(data, SnippetResult) for data in sealed_results]
        assert {tenant_id for tenant_id, _ in results} <= {self.company.tenant_id}
        return [result for _, result in results]

    def change_policy(self, **changes: Any) -> None:
        policy = find_policy_in_force(tenant_id=self.company.tenant_id).policy
        set_policy(
            actor=self.company.platform,
            document=serialize_policy(policy) | changes,
            reason="a test",
            now=timezone.now(),
        )

    def indexed_paths(self) -> set[str]:
        """Return the paths of all indexed files of this company, for all users."""
        tenant_id = self.company.tenant_id
        with tenant_scope(tenant_id):
            rows = list(RetrievalChunk.objects.values_list("id", "holder", "sealed_name"))
        names = (
            ChunkCipher(settings.ROOT_SECRET, tenant_id=tenant_id, holder=holder).open_name(
                row_id, bytes(name)
            )
            for row_id, holder, name in rows
        )
        return {path for _, path in names}


def add_to_stream(stream: str, sealed: bytes) -> None:
    num_redis_keys, limits = 1, (str(TRIM_AGE_MS), str(MAX_FILES_QUEUED))
    connect_to_redis().eval(ADD_SCRIPT, num_redis_keys, stream, sealed, FIELD, *limits)


def make_index(name: str, embeddings: FakeEmbeddings) -> TenantIndex:
    """Return the index of a company that allows indexing of the repository `shop`."""
    context = WorkerContext(
        streams=RetrievalStreams(connect_to_redis()),
        sealer=RetrievalSealer(settings.ROOT_SECRET),
        embedder=EmbeddingEngine(embeddings.url, model=MODEL),
        clock=SystemClock(),
    )
    index = TenantIndex(make_company(name, names={}), context)
    index.change_policy(retrieval=["shop"])
    return index


def make_code(*words: str) -> str:
    """Return a function of 14 lines whose name and result contain `words`."""
    lines = "".join(f"    {words[0]}_{n} = {words[0]}\n" for n in range(12))
    return f"def {'_'.join(words)}():\n{lines}    return {' + '.join(words)}\n"
