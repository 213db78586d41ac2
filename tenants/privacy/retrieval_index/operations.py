"""Operations that write the index from the files that gateways send.

Before a file is embedded, the worker checks that the policy allows the file, because embedding
sends it to the engine and may take seconds. The worker checks this again in the transaction that
writes the file's chunks, with the tenant's row locked. A change of policy takes the same lock, so
no file is written after the policy has forbidden it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet

from caret.contracts.retrieval import MAX_FILE_CHARS, FileUpload, RetrievalScope
from caret.foundation.ids import TenantId, uuid7
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import RetrievalChunk
from tenants.privacy.retrieval_index.chunk_encryption import ChunkCipher
from tenants.privacy.retrieval_index.chunking import split_into_chunks
from tenants.privacy.retrieval_index.embeddings import MAX_TEXTS, Embedder
from tenants.privacy.retrieval_index.erasure import evict_least_recently_used, lock_tenant
from tenants.privacy.retrieval_index.queries import find_indexing_rules

# Precision of `used_at`: a row is updated at most once in this time.
USED_AT_PRECISION: Final = timedelta(days=1)
MAX_CHUNKS_OF_SCOPE: Final = 5_000  # each query compares all of them


@dataclass(frozen=True, slots=True)
class _IndexedFile:
    """A file of a scope, with access to its rows in the index."""

    tenant_id: TenantId
    scope: RetrievalScope
    path: str
    cipher: ChunkCipher
    file_digest: bytes

    def is_allowed(self) -> bool:
        """Return whether the policy allows the file now. Two queries."""
        return find_indexing_rules(tenant_id=self.tenant_id).allows_file(self.scope, self.path)

    @property
    def rows(self) -> QuerySet[RetrievalChunk]:
        return RetrievalChunk.objects.filter(tenant_id=self.tenant_id, file_digest=self.file_digest)


def index_file(
    *, tenant_id: TenantId, upload: FileUpload, embedder: Embedder, now: datetime
) -> int:
    """Replace the file's chunks in the index, and return how many were embedded for it.

    Only new or changed chunks are embedded, and no transaction is open meanwhile. If another worker
    deletes a stored chunk of the file meanwhile, the chunk is missing until the file's next upload.
    A file that the policy does not allow is not indexed; the result is then 0. Raises NotFound for
    an unknown tenant, and EmbeddingFailed; the index is then unchanged.
    """
    file = _locate_file(tenant_id, upload)
    with tenant_scope(tenant_id):
        if not file.is_allowed():
            return 0
        stored_digests = {
            bytes(digest) for digest in file.rows.values_list("chunk_digest", flat=True)
        }
    texts = _split_by_digest(file, upload.text, model=embedder.model)
    new_texts = {digest: text for digest, text in texts.items() if digest not in stored_digests}
    vectors = _embed_texts(embedder, upload.path, list(new_texts.values()))
    with tenant_scope(tenant_id):
        lock_tenant(tenant_id)
        if not file.is_allowed():
            return 0
        file.rows.exclude(chunk_digest__in=list(texts)).delete()
        rows = [
            _build_row(file, digest, text, vector=vector, now=now)
            for (digest, text), vector in zip(new_texts.items(), vectors, strict=True)
        ]
        # Another worker may have stored some of these chunks meanwhile. They are skipped here.
        RetrievalChunk.objects.bulk_create(rows, ignore_conflicts=True)
        _record_use(file.rows, now=now)
        if rows:
            _evict_surplus_chunks(file)
    return len(new_texts)


def record_matches(*, tenant_id: TenantId, chunk_ids: Iterable[UUID], now: datetime) -> None:
    """Record that a query has just found these chunks."""
    with tenant_scope(tenant_id):
        chunks = RetrievalChunk.objects.filter(tenant_id=tenant_id, id__in=list(chunk_ids))
        _record_use(chunks, now=now)


def _locate_file(tenant_id: TenantId, upload: FileUpload) -> _IndexedFile:
    cipher = ChunkCipher(settings.ROOT_SECRET, tenant_id=tenant_id, holder=upload.scope.holder)
    digest = cipher.compute_file_digest(upload.scope, upload.path)
    return _IndexedFile(tenant_id, upload.scope, upload.path, cipher, digest)


def _split_by_digest(file: _IndexedFile, text: str, *, model: str) -> dict[bytes, str]:
    """Return the texts of the chunks by digest; empty: the file is too long."""
    if len(text) > MAX_FILE_CHARS:
        return {}
    return {
        file.cipher.compute_chunk_digest(file.file_digest, text=chunk.text, model=model): chunk.text
        for chunk in split_into_chunks(file.path, text)
    }


def _embed_texts(embedder: Embedder, path: str, texts: Sequence[str]) -> list[list[float]]:
    """Embed each text with the path above it, because the path says much about the file."""
    vectors: list[list[float]] = []
    for start in range(0, len(texts), MAX_TEXTS):
        batch = texts[start : start + MAX_TEXTS]
        vectors += embedder.embed([f"{path}\n{text}" for text in batch])
    return vectors


def _build_row(
    file: _IndexedFile, digest: bytes, text: str, *, vector: list[float], now: datetime
) -> RetrievalChunk:
    row_id = uuid7()
    cipher, scope = file.cipher, file.scope
    return RetrievalChunk(
        tenant_id=file.tenant_id,
        id=row_id,
        holder=scope.holder,
        scope_digest=cipher.compute_scope_digest(scope),
        file_digest=file.file_digest,
        chunk_digest=digest,
        sealed_name=cipher.seal_name(row_id, repository=scope.repository, path=file.path),
        sealed_text=cipher.seal_text(row_id, text),
        embedding=vector,
        created_at=now,
        used_at=now,
    )


def _record_use(rows: QuerySet[RetrievalChunk], *, now: datetime) -> None:
    """Update `used_at` of the rows that were not updated in the last USED_AT_PRECISION."""
    rows.filter(used_at__lt=now - USED_AT_PRECISION).update(used_at=now)


def _evict_surplus_chunks(file: _IndexedFile) -> None:
    """Delete the scope's least recently used chunks, so that at most MAX_CHUNKS_OF_SCOPE remain."""
    scope_digest = file.cipher.compute_scope_digest(file.scope)
    rows = RetrievalChunk.objects.filter(tenant_id=file.tenant_id, scope_digest=scope_digest)
    evict_least_recently_used(rows, keep=MAX_CHUNKS_OF_SCOPE)
