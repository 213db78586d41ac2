"""The namespace: the part of the engines' prefix cache that one tenant, or one user, can hit.

Its name is the `cache_salt` that the engine mixes into the hash of the prompt's first block, so
that equal prompts of two namespaces share nothing, and it cannot be guessed without the root
secret. Raising the tenant's epoch leaves all that was cached behind.
"""

import hashlib
import hmac

from caret.foundation.crypto import derive_key
from caret.foundation.ids import CacheSalt, TenantId
from inference.completion.request import Principal


class Namespaces:
    def __init__(self, root_secret: bytes) -> None:
        self._root_secret = root_secret
        self._tenant_secrets: dict[TenantId, bytes] = {}

    def salt(self, principal: Principal) -> CacheSalt:
        """64 hex digits."""
        secret = self._secret(principal.snapshot.tenant_id)
        name = principal.namespace.encode()
        return CacheSalt(hmac.digest(secret, name, hashlib.sha256).hex())

    def _secret(self, tenant_id: TenantId) -> bytes:
        if tenant_id not in self._tenant_secrets:
            secret = derive_key(self._root_secret, f"namespace/{tenant_id}")
            self._tenant_secrets[tenant_id] = secret
        return self._tenant_secrets[tenant_id]
