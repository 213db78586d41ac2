"""Finds people as operators name them."""

import uuid

from caret.foundation.ids import UserId
from tenants.errors import NotFound
from tenants.members.queries import find_user


def find_person(text: str) -> UserId:
    """By an e-mail address, or a user's id. Raises NotFound."""
    try:
        return UserId(str(uuid.UUID(text)))
    except ValueError:
        found = find_user(email=text)
    if found is None:
        raise NotFound("There is nobody with this address.")
    return found
