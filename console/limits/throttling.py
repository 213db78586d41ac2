"""Limits on guesses of passwords and codes, for each account and each network.

Counters are in Redis and changed by scripts, so the limits hold across all console processes and
for parallel requests. A counter starts with its first attempt and expires after its window, even if
attempts continue. Nobody has to wait longer than MAX_WAIT_S, or an hour for a sign-up. Accounts are
identified by the address that was typed, so unknown addresses are throttled like known ones.

A browser or network that has signed in to the account before has its own counter
(console.sign_in.devices), so other people's attempts do not lock out the account's owner. See ADR
0101.
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

WINDOW_S: Final = 60  # of the limits without another window
MAX_TRIES: Final = 5  # for one account from one network
MAX_TRIES_OF_NETWORK: Final = 30  # for all accounts; an office shares one address
MAX_STARTS: Final = 6  # starts of the playground by one user
MAX_SIGN_UP_MAILS: Final = 3  # to one address within MAX_WAIT_S
MAX_KEY_TESTS: Final = 6  # by one user
MAX_PASSWORD_CHANGES: Final = 10  # by one user within MAX_WAIT_S
MAX_DEVICE_CODES: Final = 10  # wrong ones, by one user within MAX_WAIT_S; 2.6e10 codes exist
MAX_WAIT_S: Final = 15 * 60  # the window of the limits for one account
_COUNT_SCRIPT: Final = """
for i, key in ipairs(KEYS) do
  local attempts = redis.call('INCR', key)
  if attempts == 1 then redis.call('EXPIRE', key, ARGV[2 * i]) end
  if attempts > tonumber(ARGV[2 * i - 1]) then return {i, redis.call('PTTL', key)} end
end
return {0, 0}
"""
# Only positive counters: DECR would recreate an expired one without expiry.
_UNCOUNT_SCRIPT: Final = """
for _, key in ipairs(KEYS) do
  if tonumber(redis.call('GET', key) or '0') > 0 then redis.call('DECR', key) end
end
"""


class Secret(StrEnum):
    """The kind of secret that an attempt guesses."""

    PASSWORD = "password"  # noqa: S105  # a kind of secret, not a secret
    STEP_UP_PASSWORD = "step-up"  # noqa: S105
    # Not PASSWORD: at the public sign-in page anybody can type "operator:HANDLE" as an address.
    OPERATOR_PASSWORD = "operator"  # noqa: S105
    RESET_LINK = "reset-link"  # guesses nothing, but sends an e-mail
    CODE = "code"  # of an authenticator app, or a recovery code


KNOWN_NETWORK_S: Final = 30 * 24 * 3600  # how long a network is known after its last sign-in
# Attempts for one account within MAX_WAIT_S. All unknown devices and networks together share one
# such limit; each known device or network has its own. Few codes may be guessed, because at any
# time three of only a million codes are valid.
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
    is_known_network: bool  # somebody signed in to the account from this network


@dataclass(frozen=True, slots=True)
class AttemptThrottled:
    wait_s: int  # at least 1, at most MAX_WAIT_S; an hour for sign-ups
    is_by_network: bool  # false: by account

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
    name: str
    limit: int
    window_s: int
    is_of_network: bool = False


def count_attempt(attempt: SecretAttempt) -> AttemptThrottled | None:
    """Count an attempt before the secret is checked. Return None if it is within the limits.

    Raises redis.RedisError: nobody may sign in while attempts cannot be counted.
    """
    return _count_attempt(_counters_for(attempt))


def forgive_attempt(attempt: SecretAttempt) -> None:
    """Uncount an attempt whose secret was right or was not checked, except for the network.

    If the network's counter also went down, one right password would allow more guesses at other
    accounts. Raises redis.RedisError.
    """
    names = [counter.name for counter in _counters_for(attempt) if not counter.is_of_network]
    connect_to_redis().eval(_UNCOUNT_SCRIPT, len(names), *names)


def remember_network(*, account: str, address: str) -> None:
    """Remember the network of a user who signed in with all factors. Raises redis.RedisError."""
    connect_to_redis().set(_name_of_known_network(account, address), 1, ex=KNOWN_NETWORK_S)


def is_known_network(*, account: str, address: str) -> bool:
    """Return whether somebody signed in to the account from there. Raises redis.RedisError."""
    return bool(connect_to_redis().exists(_name_of_known_network(account, address)))


def count_request_of_network(*, address: str, purpose: str = "sign-in") -> AttemptThrottled | None:
    """Count a request that guesses at no account. Each purpose has its own counter.

    Returns None within the limits. Raises redis.RedisError.
    """
    return _count_attempt([_network_counter(address, purpose)])


def count_sign_up(*, email: str, address: str) -> AttemptThrottled | None:
    """Count a request to sign up, which sends an e-mail to an address that anybody can enter.

    Checks the limits of the network, of the address and of the installation, in this order, so
    that one network cannot use up the installation's limit. Returns None within the limits. Raises
    redis.RedisError.
    """
    account = _hash_key(email.strip().lower())
    return _count_attempt(
        [
            replace(_network_counter(address, "sign-up"), limit=MAX_TRIES),
            _AttemptCounter(f"caret:throttle:sign-up:{account}", MAX_SIGN_UP_MAILS, MAX_WAIT_S),
            _AttemptCounter("caret:throttle:sign-up", settings.MAX_SIGN_UPS_AN_HOUR, 3600),
        ]
    )


def allow_playground_start(*, user_id: str) -> bool:
    """Count a start of the playground. Return False after too many. Raises redis.RedisError."""
    return (
        _count_attempt(
            [_AttemptCounter(f"caret:throttle:playground:{user_id}", MAX_STARTS, WINDOW_S)]
        )
        is None
    )


def allow_key_test(*, user_id: str) -> bool:
    """Count a test of a key. Return False after too many. Raises redis.RedisError."""
    name = f"caret:throttle:key-test:{user_id}"
    return _count_attempt([_AttemptCounter(name, MAX_KEY_TESTS, WINDOW_S)]) is None


def count_password_change(*, user_id: str) -> AttemptThrottled | None:
    """Count a change of a password, which sends an e-mail. Return None if it is within the limit.

    Raises redis.RedisError.
    """
    name = f"caret:throttle:password-change:{user_id}"
    return _count_attempt([_AttemptCounter(name, MAX_PASSWORD_CHANGES, MAX_WAIT_S)])


def count_device_code(*, user_id: str, address: str) -> AttemptThrottled | None:
    """Count a code that a user entered for an editor. Return None if it is within the limits.

    Raises redis.RedisError.
    """
    counters = [_network_counter(address, "device-code"), _device_code_counter(user_id)]
    return _count_attempt(counters)


def forgive_device_code(*, user_id: str) -> None:
    """Uncount a code that was right, except for the network. Raises redis.RedisError."""
    connect_to_redis().eval(_UNCOUNT_SCRIPT, 1, _device_code_counter(user_id).name)


def _device_code_counter(user_id: str) -> _AttemptCounter:
    return _AttemptCounter(f"caret:throttle:device-code:{user_id}", MAX_DEVICE_CODES, MAX_WAIT_S)


def _count_attempt(counters: list[_AttemptCounter]) -> AttemptThrottled | None:
    """Count one attempt at each counter, up to the first that is full."""
    limits = [number for counter in counters for number in (counter.limit, counter.window_s)]
    names = [counter.name for counter in counters]
    full, left_ms = connect_to_redis().eval(_COUNT_SCRIPT, len(names), *names, *limits)
    if not full:
        return None
    return AttemptThrottled(max(1, ceil(left_ms / 1000)), counters[full - 1].is_of_network)


def _counters_for(attempt: SecretAttempt) -> list[_AttemptCounter]:
    limit = MAX_ATTEMPTS[attempt.secret]
    account = _hash_key(f"{attempt.secret}|{attempt.account.strip().lower()}")
    name = f"caret:throttle:{attempt.secret}:{account}"
    if attempt.device is not None:
        return [_AttemptCounter(f"{name}:device:{_hash_key(attempt.device)}", limit, MAX_WAIT_S)]
    network = _network_of(attempt.address)
    origin = f"known-network:{network}" if attempt.is_known_network else "unknown"
    return [
        _network_counter(attempt.address, "sign-in"),
        _AttemptCounter(f"{name}:network:{network}", MAX_TRIES, WINDOW_S),
        _AttemptCounter(f"{name}:{origin}", limit, MAX_WAIT_S),
    ]


def _name_of_known_network(account: str, address: str) -> str:
    digest = _hash_key(f"{account.strip().lower()}|{_network_of(address)}")
    return f"caret:throttle:known-network:{digest}"


def _network_counter(address: str, purpose: str) -> _AttemptCounter:
    name = f"caret:throttle:{purpose}:network:{_network_of(address)}"
    return _AttemptCounter(name, MAX_TRIES_OF_NETWORK, WINDOW_S, is_of_network=True)


def _network_of(address: str) -> str:
    """Return the network of an address. IPv6 customers have 2^64 addresses, which count as one."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:  # the peer of a Unix socket has none
        return _hash_key(address)
    if ip.version == 4:
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.IPv6Network((ip.packed, 64), strict=False))


def _hash_key(text: str) -> str:
    """Hash the text, so that Redis contains no personal addresses."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
