"""Chunks of the retrieval index are encrypted with keys of their tenant and holder."""

import uuid

import pytest

from caret.foundation.crypto.aead import DecryptionFailed
from caret.foundation.ids import TenantId
from tenants.privacy.retrieval_index.chunk_encryption import ChunkCipher

ROOT_SECRET = b"r" * 32
ROW_ID = uuid.UUID(int=7)


def make_cipher(*, tenant: str = "acme", holder: str = "") -> ChunkCipher:
    return ChunkCipher(ROOT_SECRET, tenant_id=TenantId(tenant), holder=holder)


@pytest.mark.parametrize(
    "other", [make_cipher(tenant="globex"), make_cipher(holder="ada")], ids=["tenant", "holder"]
)
def test_another_tenant_or_holder_has_other_keys(other: ChunkCipher) -> None:
    own, file_digest = make_cipher(), b"f" * 16

    own_digest = own.compute_chunk_digest(file_digest, text="x = 1", model="m")

    assert other.compute_chunk_digest(file_digest, text="x = 1", model="m") != own_digest
    with pytest.raises(DecryptionFailed):
        other.open_text(ROW_ID, own.seal_text(ROW_ID, "x = 1"))
