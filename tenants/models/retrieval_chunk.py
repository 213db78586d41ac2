"""Encrypted chunks of indexed files, with their embeddings.

Repository names, paths and text are encrypted. Where rows must be found by such values, the table
has keyed digests of them. The embedding is not encrypted, because encrypted vectors could not be
compared. ADR 0037 describes what an embedding reveals.
"""

from typing import ClassVar, Final

from django.db import models
from pgvector.django import VectorField

from caret.foundation.postgres.row_security import RowSecurity
from tenants.models.tenant import Tenant

EMBEDDING_DIMENSIONS: Final = 384  # of the default model; another model must have the same


class RetrievalChunk(models.Model):
    """A chunk of a file.

    `tenants.privacy.retrieval_index.chunk_encryption` computes its ciphertexts and digests.
    """

    pk = models.CompositePrimaryKey("tenant_id", "id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    id = models.UUIDField(editable=False)
    # In strict isolation, retrieval finds the chunk only for this user or service key (prefix
    # "key:"). "": for the whole tenant.
    holder = models.TextField()
    # Digests of 16 bytes, with a key of the tenant and holder. scope_digest: of the repository.
    # file_digest: of repository and path. chunk_digest: of repository, path, text and embedding
    # model.
    scope_digest = models.BinaryField()
    file_digest = models.BinaryField()
    chunk_digest = models.BinaryField()
    sealed_name = models.BinaryField()  # repository and path
    sealed_text = models.BinaryField()
    embedding = VectorField(dimensions=EMBEDDING_DIMENSIONS)
    created_at = models.DateTimeField()
    used_at = models.DateTimeField()  # when it was last uploaded or matched, to the day

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
            # Reader: search_chunks, which compares all vectors of one scope (ADR 0037).
            models.Index(fields=["tenant", "scope_digest"], name="retrieval_chunk_scope"),
        ]

    def __str__(self) -> str:
        return str(self.id)
