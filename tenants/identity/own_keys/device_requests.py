"""Sign-in from an editor by the device flow (RFC 8628): the requests, and their states.

An editor requests two codes. It shows the user code, and polls with the device code. A signed-in
member opens the console, enters or compares the user code, and confirms or denies the request. The
next poll creates the key, whose text exists only in the response to this poll.

    pending --confirm--> confirmed --poll--> used --poll--> used, and the key is revoked
    pending --deny-----> denied

1. Requests are in Redis and expire. Both codes are stored only as digests.
2. A user code belongs to the first user who enters it. Other users get the response for an unknown
   code.
3. Redis scripts make the transitions, so a code cannot be confirmed or used twice.
4. The key belongs to the tenant in which the member confirmed. Permissions and policy are checked
   when the key is created, because the membership may have ended since the confirmation.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from django.conf import settings

from caret.contracts.snapshot import TenantStatus
from caret.foundation.crypto.key_derivation import derive_key
from caret.foundation.ids import LookupId, TenantId, UserId
from tenants.base.errors import DomainError, InvalidValue, NotFound
from tenants.base.redis_connection import connect_to_redis
from tenants.identity.api_keys.operations import CreatedKey, revoke_key
from tenants.identity.own_keys.operations import create_device_key, require_may_create_own_key
from tenants.security.authorization.actor import Actor, build_system_actor
from tenants.security.authorization.directory import find_memberships

LIFETIME: Final = timedelta(minutes=10)  # of a request and its codes
INTERVAL_S: Final = 5  # between two polls
MAX_NAME_CHARS: Final = 55  # of an editor or a machine; both fit into a key's name
# RFC 8628, section 6.1: only consonants, so that no words appear. There are 20^8 = 2.6e10 codes.
ALPHABET: Final = "BCDFGHJKLMNPQRSTVWXZ"
_CODE_CHARS: Final = 8
_TOLERANCE_MS: Final = 1_000  # a poll may be early by this much
# A request is kept this long after its creation, which is longer than it is valid. A late poll is
# answered with "expired", and a poll with a used code revokes the key.
_RETENTION: Final = LIFETIME * 2
_PURPOSE: Final = "device-flow/1"

# All scripts get the Redis key of the request, and the current time in Unix ms as the first
# argument. A missing field reads as false.

# Binds a request to a user. ARGV[2]: user ID. Returns 1, or 0 if the request is not pending any
# more, has expired, or is bound to another user.
_OPEN: Final = """
local held = redis.call('HMGET', KEYS[1], 'state', 'expires_at_ms', 'opened_by')
if held[1] ~= 'pending' or tonumber(held[2]) <= tonumber(ARGV[1]) then return 0 end
if held[3] and held[3] ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'opened_by', ARGV[2])
return 1
"""
# Stores a user's decision. ARGV[2]: user ID, ARGV[3]: new state, ARGV[4]: tenant ID. Returns 1, or
# 0 if the request is not pending any more, has expired, or is not bound to this user.
_DECIDE: Final = """
local held = redis.call('HMGET', KEYS[1], 'state', 'expires_at_ms', 'opened_by')
if held[1] ~= 'pending' or tonumber(held[2]) <= tonumber(ARGV[1]) then return 0 end
if held[3] ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'state', ARGV[3], 'tenant_id', ARGV[4])
return 1
"""
# Returns a PollResult, and marks a confirmed request as used. ARGV[2]: tolerance in ms, ARGV[3]: ms
# that are added to the interval after an early poll.
_POLL: Final = """
local held = redis.call('HMGET', KEYS[1], 'state', 'expires_at_ms', 'polled_at_ms', 'interval_ms')
if not held[1] then return 'unknown' end
if held[1] == 'used' then redis.call('HSET', KEYS[1], 'is_replayed', '1') return 'replayed' end
if held[1] == 'denied' then return 'denied' end
local now = tonumber(ARGV[1])
if tonumber(held[2]) <= now then return 'expired' end
if held[1] == 'confirmed' then redis.call('HSET', KEYS[1], 'state', 'used') return 'confirmed' end
redis.call('HSET', KEYS[1], 'polled_at_ms', ARGV[1])
if held[3] and now - tonumber(held[3]) < tonumber(held[4]) - tonumber(ARGV[2]) then
  redis.call('HINCRBY', KEYS[1], 'interval_ms', ARGV[3])
  return 'slow_down'
end
return 'pending'
"""


class PollResult(StrEnum):
    PENDING = "pending"
    SLOW_DOWN = "slow_down"  # pending, but the poll was too early; the interval becomes longer
    CONFIRMED = "confirmed"
    DENIED = "denied"  # by the user, or because the user may not create a key
    EXPIRED = "expired"
    REPLAYED = "replayed"  # the device code was used before
    UNKNOWN = "unknown"  # no request has this device code


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """A pending request, as the user sees it before the confirmation.

    Anybody may have sent the request, so the editor and the machine are not verified.
    """

    user_code: str  # with its hyphen
    editor: str
    machine: str
    address: str  # the IP address of the request
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class DevicePoll:
    result: PollResult
    created: CreatedKey | None = None  # only if the result is CONFIRMED


def create_device_request(
    *, device_code: str, user_code: str, editor: str, machine: str, address: str, now: datetime
) -> None:
    """Store a request with its two codes. Raises InvalidValue, redis.RedisError."""
    fields: dict[Any, Any] = {
        "state": "pending",
        "editor": _check_name("editor", editor),
        "machine": _check_name("machine", machine),
        "address": address,
        "expires_at_ms": _to_ms(now + LIFETIME),
        "interval_ms": INTERVAL_S * 1_000,
    }
    request_key = _build_request_key(device_code)
    pipeline = connect_to_redis().pipeline(transaction=True)
    pipeline.hset(request_key, mapping=fields)
    pipeline.expire(request_key, _RETENTION)
    pipeline.set(_build_user_code_key(user_code), request_key, ex=LIFETIME)
    pipeline.execute()


def generate_user_code() -> str:
    """Return a code such as BCDF-GHJK, in two groups that are easy to compare."""
    chars = "".join(secrets.choice(ALPHABET) for _ in range(_CODE_CHARS))
    return f"{chars[:4]}-{chars[4:]}"


def normalize_user_code(text: str) -> str:
    """Return an entered user code in its canonical form. Other text becomes an unknown code."""
    chars = "".join(char for char in text.upper() if char in ALPHABET)
    return f"{chars[:4]}-{chars[4:]}"


def open_device_request(*, actor: Actor, user_code: str, now: datetime) -> DeviceRequest:
    """Return the request with this user code, and bind the request to the actor.

    Raises redis.RedisError, and NotFound if the code is unknown or expired, or if the request is
    decided or bound to another user.
    """
    request_key = _find_request(user_code)
    if not _run_script(_OPEN, request_key, _to_ms(now), actor.user_id or ""):
        raise _make_not_found_error()
    return _read_request(request_key, user_code)


def confirm_device_request(*, actor: Actor, user_code: str, now: datetime) -> None:
    """Confirm the request, so that the editor gets a key of the actor in the actor's tenant.

    Raises redis.RedisError, NotFound like open_device_request, and Forbidden or Conflict if the
    actor may not create a key.
    """
    require_may_create_own_key(actor=actor, now=now)
    _store_decision(actor, user_code, "confirmed", now)


def deny_device_request(*, actor: Actor, user_code: str, now: datetime) -> None:
    """Deny the request. Raises redis.RedisError, and NotFound like open_device_request."""
    _store_decision(actor, user_code, "denied", now)


def poll_device_request(
    *, device_code: str, address: str, request_id: str, now: datetime
) -> DevicePoll:
    """Return the state of a request, and create the key of a confirmed one.

    Raises redis.RedisError.
    """
    request_key = _build_request_key(device_code)
    text: bytes = _run_script(_POLL, request_key, _to_ms(now), _TOLERANCE_MS, INTERVAL_S * 1_000)
    result = PollResult(text.decode())
    if result is PollResult.REPLAYED:
        _revoke_issued_key(request_key, now)
    if result is not PollResult.CONFIRMED:
        return DevicePoll(result)
    try:
        created = _create_key(request_key, address, request_id, now)
    except DomainError:  # for example, the membership has ended, or the policy has changed
        return DevicePoll(PollResult.DENIED)
    # Another poll with the same code may have come before this key was stored. That poll found no
    # key to revoke, so the key is revoked here.
    connect_to_redis().hset(request_key, "lookup_id", created.key.lookup_id)
    if connect_to_redis().hget(request_key, "is_replayed"):
        _revoke_issued_key(request_key, now)
        return DevicePoll(PollResult.REPLAYED)
    return DevicePoll(result, created)


def _create_key(request_key: str, address: str, request_id: str, now: datetime) -> CreatedKey:
    """Create the key for the member who confirmed. Raises DomainError."""
    tenant_id, user_id = _read_fields(request_key, "tenant_id", "opened_by")
    for row in find_memberships(user_id=UserId(user_id)):
        if row.tenant_id == tenant_id and row.status is TenantStatus.ACTIVE:
            actor = Actor(row.tenant_id, UserId(user_id), row.role, address, request_id)
            editor, machine = _read_fields(request_key, "editor", "machine")
            return create_device_key(actor=actor, name=f"{editor} on {machine}", now=now)
    raise _make_not_found_error()


def _revoke_issued_key(request_key: str, now: datetime) -> None:
    """Revoke the key of a device code that was used twice: another client may have got the key."""
    tenant_id, lookup_id = _read_fields(request_key, "tenant_id", "lookup_id")
    if lookup_id:
        actor = build_system_actor(TenantId(tenant_id))
        reason = "The code of this sign-in was used twice."
        revoke_key(actor=actor, lookup_id=LookupId(lookup_id), reason=reason, now=now)


def _store_decision(actor: Actor, user_code: str, state: str, now: datetime) -> None:
    """Store the user's decision, and delete the user code. Raises NotFound."""
    request_key = _find_request(user_code)
    user_id = actor.user_id or ""
    if not _run_script(_DECIDE, request_key, _to_ms(now), user_id, state, actor.tenant_id):
        raise _make_not_found_error()
    connect_to_redis().delete(_build_user_code_key(normalize_user_code(user_code)))


def _find_request(user_code: str) -> str:
    """Return the Redis key of the request with this user code. Raises NotFound."""
    request_key: Any = connect_to_redis().get(_build_user_code_key(normalize_user_code(user_code)))
    if request_key is None:
        raise _make_not_found_error()
    return str(request_key.decode())


def _read_request(request_key: str, user_code: str) -> DeviceRequest:
    names = ("editor", "machine", "address", "expires_at_ms")
    editor, machine, address, expires_at_ms = _read_fields(request_key, *names)
    if not expires_at_ms:  # Redis has just removed the request
        raise _make_not_found_error()
    expires_at = datetime.fromtimestamp(int(expires_at_ms) / 1_000, UTC)
    return DeviceRequest(normalize_user_code(user_code), editor, machine, address, expires_at)


def _read_fields(request_key: str, *names: str) -> list[str]:
    values: Any = connect_to_redis().hmget(request_key, names)
    return ["" if value is None else value.decode() for value in values]


def _run_script(script: str, request_key: str, *arguments: str | int) -> Any:
    num_redis_keys = 1
    return connect_to_redis().eval(script, num_redis_keys, request_key, *arguments)


def _check_name(field: str, text: str) -> str:
    name = " ".join(text.split())
    if not 1 <= len(name) <= MAX_NAME_CHARS or not name.isprintable():
        raise InvalidValue(field, "Enter 1 to {most} printable characters.", most=MAX_NAME_CHARS)
    return name


def _build_request_key(device_code: str) -> str:
    return f"caret:device-flow:request:{_digest(device_code)}"


def _build_user_code_key(user_code: str) -> str:
    return f"caret:device-flow:user-code:{_digest(user_code)}"


def _digest(code: str) -> str:
    """Return a keyed digest of a code. A plain digest of a user code could be found by trial."""
    hmac_key = derive_key(settings.ROOT_SECRET, _PURPOSE)
    return hmac.new(hmac_key, code.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _to_ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000)


def _make_not_found_error() -> NotFound:
    return NotFound(
        "This code is not valid. It may have expired. Start the sign-in again in your editor."
    )
