"""Encryption of messages with customers' code, and scripts for the streams that carry them.

Gateways and workers exchange these messages through Redis. Each message is encrypted with a key
that is derived for its tenant and purpose, and that is not stored anywhere. The envelope contains
the tenant's ID in plain text. The ID is authenticated: if it is replaced by another tenant's, the
message cannot be opened. Only ADD_SCRIPT writes to the streams; it also deletes old and excess
entries. TAKE_SCRIPT returns entries and deletes them, so no copy waits for an acknowledgement.
"""

from typing import Final, TypeVar

import msgspec

from caret.foundation.crypto.aead import DecryptionFailed, seal, unseal
from caret.foundation.crypto.key_derivation import derive_key
from caret.foundation.ids import TenantId

FIELD: Final = "sealed"  # of a stream's entry: the encoded Envelope
_VERSION: Final = 1  # of Envelope and of the encryption
# Tenants' IDs in envelopes may be forged. Without a limit, the cache of encryption keys could
# exhaust memory.
_MAX_CACHED_KEYS: Final = 10_000
MessageType = TypeVar("MessageType", bound=msgspec.Struct)

# KEYS: a stream. ARGV: the sealed message, field, maximum age in milliseconds, maximum number of
# entries. Each call deletes entries above the maximum age. The stream expires when that time has
# passed without a call. So an entry lives at most twice the maximum age.
ADD_SCRIPT: Final = """
local now = redis.call('TIME')
local oldest = tonumber(now[1]) * 1000 - tonumber(ARGV[3])
redis.call('XTRIM', KEYS[1], 'MINID', string.format('%.0f', oldest))
redis.call('XADD', KEYS[1], 'MAXLEN', ARGV[4], '*', ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
"""
# KEYS: a stream. ARGV: maximum number of entries. Returns the oldest entries and deletes them.
TAKE_SCRIPT: Final = """
local entries = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', ARGV[1])
for _, entry in ipairs(entries) do redis.call('XDEL', KEYS[1], entry[1]) end
return entries
"""


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    version: int
    tenant_id: TenantId
    ciphertext: bytes


class UnreadableMessage(Exception):
    """The message has another format or version, or is not sealed for its tenant.

    The text of the error names only the fault and quotes no content.
    """


class MessageSealer:
    """Seals and opens the messages of one purpose."""

    def __init__(self, root_secret: bytes, *, purpose: str) -> None:
        self._root_secret = root_secret
        self._purpose = purpose
        self._tenant_keys: dict[TenantId, bytes] = {}  # cache of derived encryption keys

    def seal(self, tenant_id: TenantId, message: msgspec.Struct) -> bytes:
        data = msgspec.msgpack.encode(message)
        bound_to = self._make_binding(tenant_id, type(message))
        ciphertext = seal(self._derive_key(tenant_id), data, bound_to=bound_to)
        return msgspec.msgpack.encode(Envelope(_VERSION, tenant_id, ciphertext))

    def open(self, data: bytes, kind: type[MessageType]) -> tuple[TenantId, MessageType]:
        """Return the tenant and the decrypted message.

        Raises UnreadableMessage.
        """
        try:
            envelope = msgspec.msgpack.decode(data, type=Envelope)
            if envelope.version != _VERSION:
                raise UnreadableMessage("version")
            tenant_id = envelope.tenant_id
            bound_to = self._make_binding(tenant_id, kind)
            plaintext = unseal(self._derive_key(tenant_id), envelope.ciphertext, bound_to=bound_to)
            return tenant_id, msgspec.msgpack.decode(plaintext, type=kind)
        except DecryptionFailed as error:
            raise UnreadableMessage("seal") from error
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise UnreadableMessage("format") from error

    def _derive_key(self, tenant_id: TenantId) -> bytes:
        if (key := self._tenant_keys.get(tenant_id)) is None:
            key = derive_key(self._root_secret, f"{self._purpose}-transport/{tenant_id}")
            if len(self._tenant_keys) < _MAX_CACHED_KEYS:
                self._tenant_keys[tenant_id] = key
        return key

    def _make_binding(self, tenant_id: TenantId, kind: type[msgspec.Struct]) -> bytes:
        return f"caret.{self._purpose}/{_VERSION}|{kind.__name__}|{tenant_id}".encode()


def extract_sealed(fields: list[bytes]) -> bytes:
    """Return the sealed message from the fields of an entry; b"" if it has none.

    `fields` holds names and values in turn, as TAKE_SCRIPT returns them.
    """
    return dict(zip(fields[::2], fields[1::2], strict=True)).get(FIELD.encode(), b"")
