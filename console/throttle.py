"""Slows down guessing: so many tries a minute for one e-mail address from one network address, and
so many from one network address in all."""

import hashlib
import ipaddress
from typing import Final

from tenants.keyvalue import connect

MAX_TRIES: Final = 5  # of one e-mail address
MAX_TRIES_OF_NETWORK: Final = 30  # whomever they name; an office signs in from one address
MAX_STARTS: Final = 6  # of the playground by one person
WINDOW_S: Final = 60


def take_try(*, email: str, address: str) -> bool:
    """False when there have been too many.

    Raises redis.RedisError: who cannot count lets nobody in.
    """
    pipeline = connect().pipeline(transaction=True)
    for name in (_name(email, address), _name_of_network(address)):
        pipeline.set(name, 0, ex=WINDOW_S, nx=True)
        pipeline.incr(name)
    _, tries, _, tries_of_network = pipeline.execute()
    return int(tries) <= MAX_TRIES and int(tries_of_network) <= MAX_TRIES_OF_NETWORK


def take_try_of_network(*, address: str, what: str = "sign-in") -> bool:
    """As `take_try`, where nobody is named; each `what` counts for itself. Raises
    redis.RedisError."""
    pipeline = connect().pipeline(transaction=True)
    pipeline.set(_name_of_network(address, what), 0, ex=WINDOW_S, nx=True)
    pipeline.incr(_name_of_network(address, what))
    return int(pipeline.execute()[1]) <= MAX_TRIES_OF_NETWORK


def take_start_of_playground(*, user_id: str) -> bool:
    """As `take_try`, of somebody who is signed in. Raises redis.RedisError."""
    name = f"caret:throttle:playground:{user_id}"
    pipeline = connect().pipeline(transaction=True)
    pipeline.set(name, 0, ex=WINDOW_S, nx=True)
    pipeline.incr(name)
    return int(pipeline.execute()[1]) <= MAX_STARTS


def forget_tries(*, email: str, address: str) -> None:
    """Those of the network stay: with one password of his own nobody buys more guesses."""
    connect().delete(_name(email, address))


def _name(email: str, address: str) -> str:
    who = hashlib.sha256(f"{email.strip().lower()}|{address}".encode()).hexdigest()
    return f"caret:throttle:sign-in:{who}"


def _name_of_network(address: str, what: str = "sign-in") -> str:
    return f"caret:throttle:{what}:network:{_network(address)}"


def _network(address: str) -> str:
    """An IPv6 customer has 2^64 addresses: they count as one."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:  # a Unix socket's peer has none
        return hashlib.sha256(address.encode()).hexdigest()
    if parsed.version == 4:
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((parsed.packed, 64), strict=False))
