"""Keeps the session of an owner who changes sign-in settings, to let them undo the change."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.http import HttpRequest

from caret.foundation.ids import TenantId
from tenants.identity.domains.queries import find_owning_tenant

_EXTENSION_S: Final = 3600


@contextmanager
def exempt_session(request: HttpRequest, tenant_id: TenantId, email: str) -> Iterator[str | None]:
    """Yield the key of the session that the change in the block must not end.

    If the tenant owns the domain of `email` before or after the change, the change ends all other
    sessions of such users, and this one expires in an hour.
    """
    owner_before = find_owning_tenant(email)
    yield request.session.session_key
    if tenant_id in (owner_before, find_owning_tenant(email)):
        request.session.set_expiry(_EXTENSION_S)
