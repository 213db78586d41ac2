"""Password hashing, a few at a time: by design, each hash needs 100 MiB and much CPU time."""

from __future__ import annotations

from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Final

from django.contrib.auth import authenticate
from django.utils.translation import gettext_noop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http import HttpRequest

    from tenants.models import User

MAX_HASHES: Final = 4  # concurrent, per process
MAX_WAIT_S: Final = 2.0  # for a slot
# The error message for a user who gets no slot.
BUSY: Final = gettext_noop("Too many people are signing in right now. Try again in a few seconds.")
_slots: Final = BoundedSemaphore(MAX_HASHES)


class TooManyHashes(Exception):
    """No hashing slot became free in time."""


@contextmanager
def hashing_slot() -> Iterator[None]:
    """Occupy one of the MAX_HASHES slots until the block ends. Raises TooManyHashes."""
    if not _slots.acquire(timeout=MAX_WAIT_S):
        raise TooManyHashes
    try:
        yield
    finally:
        _slots.release()


def check_password(request: HttpRequest, *, email: str, password: str) -> User | None:
    """Return the user; None if no user has this e-mail address and password.

    Replaces an outdated hash of the password. Raises TooManyHashes.
    """
    if "\0" in email:  # no account has such an address, and Postgres would reject the query
        return None
    with hashing_slot():
        user = authenticate(request, username=email, password=password)
        if user is not None and user.has_outdated_hash:
            user.set_password(password)
            user.save(update_fields=["password"])
        return user
