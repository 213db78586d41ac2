"""Encryption of the chunks of customers' code, with keys that are in no database.

The encryption keys are derived from ROOT_SECRET for each tenant and holder. The holder is the whole
tenant or, in strict isolation, a user or a service key (an API key). One holder's encryption key
cannot decrypt another holder's chunks, and a row that was copied to another tenant cannot be
decrypted. Digests are keyed in the same way: equal names or texts of two holders have different
digests, and nobody can compute a digest without the holder's digest key.
"""

import hashlib
import hmac
from typing import Final
from uuid import UUID

import msgspec

from caret.contracts.retrieval import RetrievalScope
from caret.foundation.crypto.aead import seal, unseal
from caret.foundation.crypto.key_derivation import derive_key
from caret.foundation.ids import TenantId

_DIGEST_BYTES: Final = 16


class ChunkCipher:
    """The cipher of one holder. It derives its two keys once; each takes about 20 microseconds."""

    def __init__(self, root_secret: bytes, *, tenant_id: TenantId, holder: str) -> None:
        purpose = f"{tenant_id}/{holder}"
        self._sealing_key = derive_key(root_secret, f"retrieval-chunk/{purpose}")
        self._digest_key = derive_key(root_secret, f"retrieval-digest/{purpose}")
        self._tenant_id = tenant_id

    def compute_scope_digest(self, scope: RetrievalScope) -> bytes:
        return self._digest("scope", scope.repository)

    def compute_file_digest(self, scope: RetrievalScope, path: str) -> bytes:
        return self._digest("file", scope.repository, path)

    def compute_chunk_digest(self, file_digest: bytes, *, text: str, model: str) -> bytes:
        return self._digest("chunk", file_digest.hex(), model, text)

    def seal_name(self, row_id: UUID, *, repository: str, path: str) -> bytes:
        return self._seal("name", row_id, msgspec.msgpack.encode((repository, path)))

    def open_name(self, row_id: UUID, ciphertext: bytes) -> tuple[str, str]:
        """Return repository and path. Raises DecryptionFailed."""
        repository, path = msgspec.msgpack.decode(
            self._unseal("name", row_id, ciphertext), type=tuple[str, str]
        )
        return repository, path

    def seal_text(self, row_id: UUID, text: str) -> bytes:
        return self._seal("text", row_id, text.encode())

    def open_text(self, row_id: UUID, ciphertext: bytes) -> str:
        """Return the text. Raises DecryptionFailed."""
        return self._unseal("text", row_id, ciphertext).decode()

    def _digest(self, kind: str, *parts: str) -> bytes:
        data = msgspec.msgpack.encode((kind, *parts))
        return hmac.digest(self._digest_key, data, hashlib.sha256)[:_DIGEST_BYTES]

    def _seal(self, column: str, row_id: UUID, data: bytes) -> bytes:
        return seal(self._sealing_key, data, bound_to=self._build_context(column, row_id))

    def _unseal(self, column: str, row_id: UUID, ciphertext: bytes) -> bytes:
        return unseal(self._sealing_key, ciphertext, bound_to=self._build_context(column, row_id))

    def _build_context(self, column: str, row_id: UUID) -> bytes:
        return f"retrieval_chunk/{column}|{self._tenant_id}|{row_id}".encode()
