"""Cache namespaces: the part of the prefix cache that one tenant, or one user, can hit.

Each namespace has a `cache_salt`, which the engine adds to the hash of a prompt's first block.
Equal prompts in two namespaces therefore share no blocks. The salt cannot be guessed without the
root secret. When the cache epoch of a tenant changes, so do the salts of its namespaces, and all
earlier blocks become unreachable.
"""

import hashlib
import hmac
from functools import lru_cache
from typing import Final

from caret.foundation.crypto.key_derivation import derive_key
from caret.foundation.ids import CacheSalt, TenantId
from inference.completion.request import Principal

# Salts are cached because each request needs one. A cached salt takes about 300 bytes.
_MAX_CACHED_SALTS: Final = 10_000


class CacheNamespaces:
    """The salts of all namespaces, derived from the root secret."""

    def __init__(self, root_secret: bytes) -> None:
        self._root_secret = root_secret
        self._tenant_secrets: dict[TenantId, bytes] = {}
        self._cached_salt = lru_cache(maxsize=_MAX_CACHED_SALTS)(self._compute_salt)

    def derive_salt(self, principal: Principal) -> CacheSalt:
        """Return the salt of the principal's namespace, 64 hex digits."""
        return self._cached_salt(principal.snapshot.tenant_id, principal.namespace)

    def _compute_salt(self, tenant_id: TenantId, namespace: str) -> CacheSalt:
        digest = hmac.digest(self._derive_secret(tenant_id), namespace.encode(), hashlib.sha256)
        return CacheSalt(digest.hex())

    def _derive_secret(self, tenant_id: TenantId) -> bytes:
        if tenant_id not in self._tenant_secrets:
            secret = derive_key(self._root_secret, f"namespace/{tenant_id}")
            self._tenant_secrets[tenant_id] = secret
        return self._tenant_secrets[tenant_id]
