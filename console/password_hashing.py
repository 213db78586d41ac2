"""Checks passwords, only a few at once: each takes 100 MiB and a core's time, by intention."""

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

MAX_CHECKS: Final = 4  # at once, in this process
MAX_WAIT_S: Final = 2.0
# For the page of who finds no place.
BUSY: Final = gettext_noop("Too many people are signing in right now. Try again in a few seconds.")
_places: Final = BoundedSemaphore(MAX_CHECKS)


class TooManyHashes(Exception):
    """No place became free in time."""


@contextmanager
def hashing_slot() -> Iterator[None]:
    """Raises Busy."""
    if not _places.acquire(timeout=MAX_WAIT_S):
        raise TooManyHashes
    try:
        yield
    finally:
        _places.release()


def check_password(request: HttpRequest, *, email: str, password: str) -> User | None:
    """The user; None when the two do not belong together. Raises Busy."""
    if "\0" in email:  # nobody's, and Postgres would not even look
        return None
    with hashing_slot():
        return authenticate(request, username=email, password=password)
