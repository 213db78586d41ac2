"""Limits on guesses of passwords and codes, and on other requests that could be abused.

Scripts change the counters in Redis. Therefore the limits are the same for all console processes,
and parallel requests cannot exceed them. A counter starts with its first attempt and expires after
its window, even if attempts continue. Nobody has to wait longer than MAX_WAIT_S; for a sign-up, an
hour.

An account is identified by the e-mail address that was typed. An address without an account is
throttled in the same way. If somebody has signed in to the account with a browser or from a network
before, this browser or network has its own counter (console.sign_in.devices). Therefore attempts of
other people do not lock out the account's owner. See ADR 0101.
"""

import hashlib
import ipaddress
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil
from typing import Final

from django.conf import settings
from django.utils.translation import ngettext

from tenants.base.redis_connection import connect_to_redis

WINDOW_S: Final = 60  # the window of each limit for which no other window is named
MAX_WAIT_S: Final = 15 * 60  # the longer window, of limits for one account or user
MAX_TRIES: Final = 5  # for one account from one network; also sign-ups from one network
MAX_TRIES_OF_NETWORK: Final = 30  # for all accounts: the users of an office share one address
MAX_STARTS: Final = 6  # starts of the playground by one user
MAX_SIGN_UP_MAILS: Final = 3  # to one e-mail address within MAX_WAIT_S
MAX_KEY_TESTS: Final = 6  # by one user
MAX_PASSWORD_CHANGES: Final = 10  # by one user within MAX_WAIT_S
# Wrong codes, by one user within MAX_WAIT_S. There are 2.6e10 codes (device_requests.ALPHABET).
MAX_DEVICE_CODES: Final = 10
# Counts an attempt at each of KEYS, up to the first counter that is full. ARGV has the limit and
# the window in seconds of each counter. Returns the index of the full counter, or 0, and the
# milliseconds until it expires.
_COUNT_SCRIPT: Final = """
for i, key in ipairs(KEYS) do
  local attempts = redis.call('INCR', key)
  if attempts == 1 then redis.call('EXPIRE', key, ARGV[2 * i]) end
  if attempts > tonumber(ARGV[2 * i - 1]) then return {i, redis.call('PTTL', key)} end
end
return {0, 0}
"""
# Decrements only positive counters: DECR would create an expired counter again, without expiry.
_UNCOUNT_SCRIPT: Final = """
for _, key in ipairs(KEYS) do
  if tonumber(redis.call('GET', key) or '0') > 0 then redis.call('DECR', key) end
end
"""


class Secret(StrEnum):
    """The kind of secret that an attempt guesses. Each kind has its own counters."""

    PASSWORD = "password"  # noqa: S105  # a kind of secret, not a secret
    STEP_UP_PASSWORD = "step-up"  # noqa: S105
    # Separate from PASSWORD: on the public sign-in page, anybody can type "operator:HANDLE" as an
    # e-mail address, and would lock out the operator.
    OPERATOR_PASSWORD = "operator"  # noqa: S105
    RESET_LINK = "reset-link"  # no guess, but a request for an e-mail with a link
    CODE = "code"  # of an authenticator app, or a recovery code


KNOWN_NETWORK_S: Final = 30 * 24 * 3600  # the time for which a network is known after a sign-in
# Attempts for one account within MAX_WAIT_S. Each known browser and each known network has this
# limit for itself. All other browsers and networks share one limit. The limit for codes is lower,
# because there are only a million codes, and three of them are valid at any time.
MAX_ATTEMPTS: Final = {
    Secret.PASSWORD: 10,
    Secret.STEP_UP_PASSWORD: 10,
    Secret.OPERATOR_PASSWORD: 10,
    Secret.RESET_LINK: 3,
    Secret.CODE: 5,
}


@dataclass(frozen=True, slots=True)
class SecretAttempt:
    """A guess at a secret of an account."""

    secret: Secret
    account: str  # an e-mail address, or operator:HANDLE; the account need not exist
    address: str  # the client's IP address
    device: str | None  # ID of a browser that signed in to the account before; None: unknown
    is_known_network: bool  # somebody signed in to the account from this network before


@dataclass(frozen=True, slots=True)
class AttemptThrottled:
    """An attempt that exceeds a limit."""

    wait_s: int  # from 1 to MAX_WAIT_S; for a sign-up, at most an hour
    is_by_network: bool  # True: the limit of the network; False: another limit

    @property
    def message(self) -> str:
        minutes = ceil(self.wait_s / 60)
        text = ngettext(
            "Too many attempts. Try again in %(minutes)d minute.",
            "Too many attempts. Try again in %(minutes)d minutes.",
            minutes,
        )
        return text % {"minutes": minutes}


@dataclass(frozen=True, slots=True)
class _AttemptCounter:
    name: str  # of the key in Redis
    limit: int
    window_s: int
    is_of_network: bool = False


def count_attempt(attempt: SecretAttempt) -> AttemptThrottled | None:
    """Count an attempt. Call this before the secret is checked. None: it is within the limits.

    Raises redis.RedisError. Then the secret must not be checked, because nobody may guess without a
    limit.
    """
    return _count_attempt(_counters_for(attempt))


def forgive_attempt(attempt: SecretAttempt) -> None:
    """Uncount an attempt whose secret was right, or was not checked.

    The counter of the network keeps the attempt. Otherwise, each right password would allow one
    more guess at another account. Raises redis.RedisError.
    """
    names = [counter.name for counter in _counters_for(attempt) if not counter.is_of_network]
    connect_to_redis().eval(_UNCOUNT_SCRIPT, len(names), *names)


def remember_network(*, account: str, address: str) -> None:
    """Remember the network of a user who signed in with all factors. Raises redis.RedisError."""
    connect_to_redis().set(_name_of_known_network(account, address), 1, ex=KNOWN_NETWORK_S)


def is_known_network(*, account: str, address: str) -> bool:
    """Return whether somebody signed in to the account from the network of this IP address.

    Raises redis.RedisError.
    """
    return bool(connect_to_redis().exists(_name_of_known_network(account, address)))


def count_request_of_network(*, address: str, purpose: str = "sign-in") -> AttemptThrottled | None:
    """Count a request that only its network limits, such as a sign-in with a passkey.

    None: it is within the limit of its network. Each purpose has its own counter for each network.
    Raises redis.RedisError.
    """
    return _count_attempt([_network_counter(address, purpose)])


def count_sign_up(*, email: str, address: str) -> AttemptThrottled | None:
    """Count a request to sign up, which sends an e-mail to any address that the user enters.

    None: it is within the limits. The limits of the network, of the e-mail address and of the
    installation are checked in this order. Therefore one network cannot use up the limit of the
    installation. Raises redis.RedisError.
    """
    account = _hash_text(email.strip().lower())
    return _count_attempt(
        [
            replace(_network_counter(address, "sign-up"), limit=MAX_TRIES),
            _AttemptCounter(f"caret:throttle:sign-up:{account}", MAX_SIGN_UP_MAILS, MAX_WAIT_S),
            _AttemptCounter("caret:throttle:sign-up", settings.MAX_SIGN_UPS_AN_HOUR, 3600),
        ]
    )


def allow_playground_start(*, user_id: str) -> bool:
    """Count a start of the playground. Return False if there were too many.

    Raises redis.RedisError.
    """
    return (
        _count_attempt(
            [_AttemptCounter(f"caret:throttle:playground:{user_id}", MAX_STARTS, WINDOW_S)]
        )
        is None
    )


def allow_key_test(*, user_id: str) -> bool:
    """Count a test of an API key. Return False if there were too many. Raises redis.RedisError."""
    name = f"caret:throttle:key-test:{user_id}"
    return _count_attempt([_AttemptCounter(name, MAX_KEY_TESTS, WINDOW_S)]) is None


def count_password_change(*, user_id: str) -> AttemptThrottled | None:
    """Count a change of a password, which sends an e-mail. None: it is within the limit.

    Raises redis.RedisError.
    """
    name = f"caret:throttle:password-change:{user_id}"
    return _count_attempt([_AttemptCounter(name, MAX_PASSWORD_CHANGES, MAX_WAIT_S)])


def count_device_code(*, user_id: str, address: str) -> AttemptThrottled | None:
    """Count a code that a user entered to sign in an editor. None: it is within the limits.

    Raises redis.RedisError.
    """
    counters = [_network_counter(address, "device-code"), _device_code_counter(user_id)]
    return _count_attempt(counters)


def forgive_device_code(*, user_id: str) -> None:
    """Uncount a code that was right. The counter of the network keeps it.

    Raises redis.RedisError.
    """
    connect_to_redis().eval(_UNCOUNT_SCRIPT, 1, _device_code_counter(user_id).name)


def _device_code_counter(user_id: str) -> _AttemptCounter:
    return _AttemptCounter(f"caret:throttle:device-code:{user_id}", MAX_DEVICE_CODES, MAX_WAIT_S)


def _count_attempt(counters: list[_AttemptCounter]) -> AttemptThrottled | None:
    """Count one attempt at each counter, up to the first that is full. None: none is full."""
    limits = [number for counter in counters for number in (counter.limit, counter.window_s)]
    names = [counter.name for counter in counters]
    full, left_ms = connect_to_redis().eval(_COUNT_SCRIPT, len(names), *names, *limits)
    if not full:
        return None
    return AttemptThrottled(max(1, ceil(left_ms / 1000)), counters[full - 1].is_of_network)


def _counters_for(attempt: SecretAttempt) -> list[_AttemptCounter]:
    """Return the counters of an attempt, in the order in which they are checked.

    A known browser has only its own counter.
    """
    limit = MAX_ATTEMPTS[attempt.secret]
    account = _hash_text(f"{attempt.secret}|{attempt.account.strip().lower()}")
    name = f"caret:throttle:{attempt.secret}:{account}"
    if attempt.device is not None:
        return [_AttemptCounter(f"{name}:device:{_hash_text(attempt.device)}", limit, MAX_WAIT_S)]
    network = _network_of(attempt.address)
    origin = f"known-network:{network}" if attempt.is_known_network else "unknown"
    return [
        _network_counter(attempt.address, "sign-in"),
        _AttemptCounter(f"{name}:network:{network}", MAX_TRIES, WINDOW_S),
        _AttemptCounter(f"{name}:{origin}", limit, MAX_WAIT_S),
    ]


def _name_of_known_network(account: str, address: str) -> str:
    digest = _hash_text(f"{account.strip().lower()}|{_network_of(address)}")
    return f"caret:throttle:known-network:{digest}"


def _network_counter(address: str, purpose: str) -> _AttemptCounter:
    name = f"caret:throttle:{purpose}:network:{_network_of(address)}"
    return _AttemptCounter(name, MAX_TRIES_OF_NETWORK, WINDOW_S, is_of_network=True)


def _network_of(address: str) -> str:
    """Return the network of an IP address: an IPv4 address itself, or an IPv6 network of 64 bits.

    A customer with IPv6 usually has all addresses of such a network.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:  # not an IP address: the peer of a Unix socket has none
        return _hash_text(address)
    if ip.version == 4:
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.IPv6Network((ip.packed, 64), strict=False))


def _hash_text(text: str) -> str:
    """Return a hash of the text, so that Redis contains no e-mail addresses."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
