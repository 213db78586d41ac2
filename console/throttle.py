"""Slows down guessing: so many tries a minute for one e-mail address from one network address."""

import hashlib
from typing import Final

from tenants.keyvalue import connect

MAX_TRIES: Final = 5
WINDOW_S: Final = 60


def take_try(*, email: str, address: str) -> bool:
    """False when there have been too many.

    Raises redis.RedisError: who cannot count lets nobody in.
    """
    name = _name(email, address)
    pipeline = connect().pipeline(transaction=True)
    pipeline.set(name, 0, ex=WINDOW_S, nx=True)
    pipeline.incr(name)
    _, tries = pipeline.execute()
    return int(tries) <= MAX_TRIES


def forget_tries(*, email: str, address: str) -> None:
    connect().delete(_name(email, address))


def _name(email: str, address: str) -> str:
    who = hashlib.sha256(f"{email.strip().lower()}|{address}".encode()).hexdigest()
    return f"caret:throttle:sign-in:{who}"
