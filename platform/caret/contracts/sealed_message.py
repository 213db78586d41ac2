"""Messages between the planes that hold customers' code: sealed for their tenant, in streams that
forget.

All of a message is sealed with a key of its tenant and purpose that is in no store. The tenant
stands beside it, in clear, and is bound into the seal: under another tenant's name a message does
not open. Streams are written by ADD_SCRIPT alone, which trims what is old or too much, and read by
TAKE_SCRIPT, which deletes what it takes: nothing waits for an acknowledgement, and no copy waits
for one either.
"""

from typing import Final, TypeVar

import msgspec

from caret.foundation.crypto.aead import DecryptionFailed, seal, unseal
from caret.foundation.crypto.key_derivation import derive_key
from caret.foundation.ids import TenantId

FIELD: Final = "sealed"
_VERSION: Final = 1
_MAX_KEYS: Final = 10_000  # a name in an envelope is only a claim: it must not fill the memory
Wanted = TypeVar("Wanted", bound=msgspec.Struct)

# KEYS: a stream. ARGV: the sealed message, field, milliseconds, entries at most. An entry is gone
# after twice the time at the latest, whether or not others come after it.
ADD_SCRIPT: Final = """
local now = redis.call('TIME')
local oldest = tonumber(now[1]) * 1000 - tonumber(ARGV[3])
redis.call('XTRIM', KEYS[1], 'MINID', string.format('%.0f', oldest))
redis.call('XADD', KEYS[1], 'MAXLEN', ARGV[4], '*', ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
"""
# KEYS: a stream. ARGV: entries at most. Returns the oldest ones, which are in it no longer.
TAKE_SCRIPT: Final = """
local entries = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', ARGV[1])
for _, entry in ipairs(entries) do redis.call('XDEL', KEYS[1], entry[1]) end
return entries
"""


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    version: int
    tenant_id: TenantId
    sealed: bytes


class UnreadableMessage(Exception):
    """No message of ours, or not for whom it says it is. The text holds none of its content."""


class MessageSealer:
    """Seals messages of one purpose; holds a key for each tenant it has met."""

    def __init__(self, root_secret: bytes, *, purpose: str) -> None:
        self._root_secret = root_secret
        self._purpose = purpose
        self._keys: dict[TenantId, bytes] = {}

    def seal(self, tenant_id: TenantId, message: msgspec.Struct) -> bytes:
        data = msgspec.msgpack.encode(message)
        bound_to = self._make_binding(tenant_id, type(message))
        sealed = seal(self._derive_key(tenant_id), data, bound_to=bound_to)
        return msgspec.msgpack.encode(Envelope(_VERSION, tenant_id, sealed))

    def open(self, data: bytes, kind: type[Wanted]) -> tuple[TenantId, Wanted]:
        """Raises Unreadable."""
        try:
            envelope = msgspec.msgpack.decode(data, type=Envelope)
            if envelope.version != _VERSION:
                raise UnreadableMessage("version")
            tenant_id = envelope.tenant_id
            bound_to = self._make_binding(tenant_id, kind)
            opened = unseal(self._derive_key(tenant_id), envelope.sealed, bound_to=bound_to)
            return tenant_id, msgspec.msgpack.decode(opened, type=kind)
        except DecryptionFailed as error:
            raise UnreadableMessage("seal") from error
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise UnreadableMessage("format") from error

    def _derive_key(self, tenant_id: TenantId) -> bytes:
        if (key := self._keys.get(tenant_id)) is None:
            key = derive_key(self._root_secret, f"{self._purpose}-transport/{tenant_id}")
            if len(self._keys) < _MAX_KEYS:
                self._keys[tenant_id] = key
        return key

    def _make_binding(self, tenant_id: TenantId, kind: type[msgspec.Struct]) -> bytes:
        name = f"caret.{self._purpose}/{_VERSION}|{kind.__name__}|{tenant_id}"
        return name.encode("utf-8", "replace")


def extract_sealed(fields: list[bytes]) -> bytes:
    """The sealed message of an entry that TAKE_SCRIPT has returned: names and values in turn. b""
    for an entry that holds none."""
    return dict(zip(fields[::2], fields[1::2], strict=True)).get(FIELD.encode(), b"")
