"""The namespace: the part of the engines' prefix cache that one tenant, or one user, can hit.

Its name is the `cache_salt` that the engine mixes into the hash of the prompt's first block, so
that equal prompts of two namespaces share nothing, and it cannot be guessed without the root
secret. Raising the tenant's epoch leaves all that was cached behind.
"""

import hashlib
import hmac
from functools import lru_cache
from typing import Final

from caret.foundation.crypto.key_derivation import derive_key
from caret.foundation.ids import CacheSalt, TenantId
from inference.completion.request import Principal

_MAX_HELD: Final = 10_000  # of about 300 bytes: a salt is asked for with each keystroke


class Namespaces:
    def __init__(self, root_secret: bytes) -> None:
        self._root_secret = root_secret
        self._tenant_secrets: dict[TenantId, bytes] = {}
        self._named = lru_cache(maxsize=_MAX_HELD)(self._compute_salt)

    def derive_salt(self, principal: Principal) -> CacheSalt:
        """64 hex digits."""
        return self._named(principal.snapshot.tenant_id, principal.namespace)

    def _compute_salt(self, tenant_id: TenantId, namespace: str) -> CacheSalt:
        digest = hmac.digest(self._derive_secret(tenant_id), namespace.encode(), hashlib.sha256)
        return CacheSalt(digest.hex())

    def _derive_secret(self, tenant_id: TenantId) -> bytes:
        if tenant_id not in self._tenant_secrets:
            secret = derive_key(self._root_secret, f"namespace/{tenant_id}")
            self._tenant_secrets[tenant_id] = secret
        return self._tenant_secrets[tenant_id]
