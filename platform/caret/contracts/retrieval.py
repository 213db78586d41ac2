"""Retrieval's messages between the planes: files to index, questions, and what was found.

They hold customers' code, so all of a message is sealed with a key of its tenant that is in no
store, and none stays in Redis for longer than MAX_AGE_S:

    caret:retrieval:files            stream  field `sealed`: a SentFile
    caret:retrieval:questions        stream  field `sealed`: a Question
    caret:retrieval:found:<gateway>  list    sealed Found; the gateway takes them out

Both streams are written by ADD_SCRIPT alone, which trims what is old or too much; who takes an
entry deletes it with that.

A message may be lost on the way (Redis or a worker that ends): the gateway sends it again with a
later request. So nothing waits for an acknowledgement, and no copy waits for one either.

The tenant stands beside the sealed message, in clear, and is bound into the seal: under another
tenant's name a message does not open.
"""

from typing import Final, TypeVar

import msgspec

from caret.foundation.crypto import derive_key
from caret.foundation.ids import TenantId
from caret.foundation.sealing import SealBroken, seal, unseal

FILES: Final = "caret:retrieval:files"
QUESTIONS: Final = "caret:retrieval:questions"
FIELD: Final = "sealed"
MAX_AGE_S: Final = 60
MAX_FILES_QUEUED: Final = 512  # of MAX_FILE_CHARS each; the oldest go first
MAX_QUESTIONS_QUEUED: Final = 1_024
MAX_FOUND_QUEUED: Final = 256  # of one gateway

MAX_FILE_CHARS: Final = 50_000  # longer ones are seldom written by hand
MAX_QUESTION_CHARS: Final = 1_500
MAX_SNIPPETS: Final = 8  # in an answer
_VERSION: Final = 1
_MAX_KEYS: Final = 10_000  # a name in an envelope is only a claim: it must not fill the memory


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
STREAM_MS: Final = MAX_AGE_S * 1000 // 2  # so that it is MAX_AGE_S at most


class Scope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose files these are; nobody else finds them."""

    holder: str  # strict isolation: the user or service key; "": all of the tenant
    repository: str  # its name, never empty


class SentFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="file"):
    scope: Scope
    path: str
    text: str


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="question"):
    question_id: str
    gateway: str  # names the list to answer to: 32 hex digits
    scope: Scope
    path: str  # the current file: none of its own parts is wanted
    text: str  # around the cursor


class FoundSnippet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    text: str
    score: float  # similarity, 0 to 1


class Found(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="found"):
    question_id: str
    snippets: tuple[FoundSnippet, ...]  # in descending order of score, MAX_SNIPPETS at most


Message = SentFile | Question | Found
Wanted = TypeVar("Wanted", bound=Message)


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    version: int
    tenant_id: TenantId
    sealed: bytes


class Unreadable(Exception):
    """No message of ours, or not for whom it says it is. The text holds none of its content."""


class Sealer:
    """Seals messages of both planes; holds a key for each tenant it has met."""

    def __init__(self, root_secret: bytes) -> None:
        self._root_secret = root_secret
        self._keys: dict[TenantId, bytes] = {}

    def seal(self, tenant_id: TenantId, message: Message) -> bytes:
        data = msgspec.msgpack.encode(message)
        bound_to = _binding(tenant_id, type(message))
        sealed = seal(self._key(tenant_id), data, bound_to=bound_to)
        return msgspec.msgpack.encode(Envelope(_VERSION, tenant_id, sealed))

    def open(self, data: bytes, kind: type[Wanted]) -> tuple[TenantId, Wanted]:
        """Raises Unreadable."""
        try:
            envelope = msgspec.msgpack.decode(data, type=Envelope)
            if envelope.version != _VERSION:
                raise Unreadable("version")
            tenant_id = envelope.tenant_id
            opened = unseal(
                self._key(tenant_id), envelope.sealed, bound_to=_binding(tenant_id, kind)
            )
            return tenant_id, msgspec.msgpack.decode(opened, type=kind)
        except SealBroken as error:
            raise Unreadable("seal") from error
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise Unreadable("format") from error

    def _key(self, tenant_id: TenantId) -> bytes:
        if (key := self._keys.get(tenant_id)) is None:
            key = derive_key(self._root_secret, f"retrieval-transport/{tenant_id}")
            if len(self._keys) < _MAX_KEYS:
                self._keys[tenant_id] = key
        return key


def _binding(tenant_id: TenantId, kind: type[msgspec.Struct]) -> bytes:
    return f"caret.retrieval/{_VERSION}|{kind.__name__}|{tenant_id}".encode("utf-8", "replace")


def answers_key(gateway: str) -> str:
    """Of the list from which the gateway takes its answers."""
    return f"caret:retrieval:found:{gateway}"
