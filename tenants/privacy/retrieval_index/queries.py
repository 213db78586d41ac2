"""Queries of the index.

`search_chunks` finds the chunks of one repository that are most similar to a text. It searches only
the chunks of one holder: the whole tenant or, in strict isolation, one user or service key.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings
from pgvector.django import CosineDistance

from caret.contracts.retrieval import MAX_SNIPPETS, SnippetMatch, SnippetQuery
from caret.contracts.snapshot import TenantStatus
from caret.foundation.crypto.aead import DecryptionFailed
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import RetrievalChunk, Tenant
from tenants.policy.queries import load_active_policy
from tenants.privacy.retrieval_index.chunk_encryption import ChunkCipher
from tenants.privacy.retrieval_index.indexing_rules import IndexingRules

# Matches below this score are accidental: with the default model, unrelated code scores 0.0 to 0.2.
MIN_SCORE: Final = 0.2

logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ChunkMatch:
    chunk_id: UUID
    snippet: SnippetMatch


def find_indexing_rules(*, tenant_id: TenantId) -> IndexingRules:
    """Return the tenant's current indexing rules. Two queries.

    Raises NotFound for a tenant without a policy.
    """
    with tenant_scope(tenant_id):
        policy = load_active_policy(tenant_id=tenant_id)
        status = Tenant.objects.values_list("status", flat=True).get(id=tenant_id)
    return IndexingRules(status=TenantStatus(status), policy=policy)


def search_chunks(
    *, tenant_id: TenantId, query: SnippetQuery, vector: Sequence[float]
) -> list[ChunkMatch]:
    """Return up to MAX_SNIPPETS matches, best first, without the query's own file.

    Matches below MIN_SCORE, or in files that the policy does not allow, are left out. Compares the
    vector with those of all chunks of the scope, without a vector index (ADR 0037), so the result
    is exact. Three queries.
    """
    scope = query.scope
    cipher = ChunkCipher(settings.ROOT_SECRET, tenant_id=tenant_id, holder=scope.holder)
    with tenant_scope(tenant_id):
        rules = find_indexing_rules(tenant_id=tenant_id)
        rows = (
            RetrievalChunk.objects.filter(
                tenant_id=tenant_id, scope_digest=cipher.compute_scope_digest(scope)
            )
            .exclude(file_digest=cipher.compute_file_digest(scope, query.path))
            .annotate(distance=CosineDistance("embedding", list(vector)))
            .order_by("distance", "id")
            .values_list("id", "sealed_name", "sealed_text", "distance")[:MAX_SNIPPETS]
        )
        matches = [
            _open_chunk(cipher, chunk_id, bytes(name), bytes(text), distance=distance)
            for chunk_id, name, text, distance in rows
        ]
    return [
        match
        for match in matches
        if match is not None
        and match.snippet.score >= MIN_SCORE
        and rules.allows_file(scope, match.snippet.path)
    ]


def _open_chunk(
    cipher: ChunkCipher, chunk_id: UUID, sealed_name: bytes, sealed_text: bytes, *, distance: float
) -> ChunkMatch | None:
    try:
        _, path = cipher.open_name(chunk_id, sealed_name)
        text = cipher.open_text(chunk_id, sealed_text)
    except DecryptionFailed:
        # The row was changed, or Caret did not write it. `clean_up_index` erases rows whose name
        # cannot be decrypted, and unused rows (KEEP_UNUSED).
        logger.error("retrieval.seal_broken", chunk_id=str(chunk_id))
        return None
    # The cosine similarity; a negative one counts as 0.
    score = min(1.0, max(0.0, 1.0 - distance))
    return ChunkMatch(chunk_id, SnippetMatch(path=path, text=text, score=round(score, 4)))
