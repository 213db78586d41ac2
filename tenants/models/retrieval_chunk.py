"""A part of a file of a repository whose tenant lets it be indexed: sealed, beside its embedding.

Names, paths and text are sealed; what has to be compared is a keyed digest. The embedding cannot be
sealed, or nothing could be found: ADR 0037 says what it reveals.
"""

from typing import ClassVar, Final

from django.db import models
from pgvector.django import VectorField

from caret.foundation.postgres.row_security import RowSecurity
from tenants.models.tenant import Tenant

EMBEDDING_DIMENSIONS: Final = 384  # of the default model; another model must have as many


class RetrievalChunk(models.Model):
    """`tenants.privacy.retrieval_index.chunk_encryption` makes and reads the digests and the sealed
    columns."""

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(editable=False)
    # Strict isolation: the user, or "key:" and the service key, who alone finds it; "": all of the
    # tenant.
    holder = models.TextField()
    # 16 bytes each: of the holder and the repository; of these and the path; of these, the text and
    # the embedding model.
    scope_digest = models.BinaryField()
    file_digest = models.BinaryField()
    chunk_digest = models.BinaryField()
    sealed_name = models.BinaryField()  # repository and path
    sealed_text = models.BinaryField()
    embedding = VectorField(dimensions=EMBEDDING_DIMENSIONS)
    created_at = models.DateTimeField()
    used_at = models.DateTimeField()  # sent again or found, to the day

    class Meta:
        db_table = "tenants_retrieval_chunk"
        constraints: ClassVar = [
            # Reader: index_file, by the first two columns.
            models.UniqueConstraint(
                fields=["tenant", "file_digest", "chunk_digest"], name="retrieval_chunk_once"
            ),
            RowSecurity(name="retrieval_chunk_tenant"),
        ]
        indexes: ClassVar = [
            # Reader: find_snippets, which compares all vectors of one scope (ADR 0037).
            models.Index(fields=["tenant", "scope_digest"], name="retrieval_chunk_scope"),
        ]

    def __str__(self) -> str:
        return str(self.id)
