"""Keeps the session of an administrator who changes sign-in settings, to let them undo it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.http import HttpRequest

from caret.foundation.ids import TenantId
from tenants.identity.domains.queries import find_owning_tenant

_EXTENSION_S: Final = 3600


@contextmanager
def exempt_session(request: HttpRequest, tenant_id: TenantId, email: str) -> Iterator[str | None]:
    """Yield the session's key. If the change would end the session, keep it for one more hour."""
    owner_before = find_owning_tenant(email)
    yield request.session.session_key
    if tenant_id in (owner_before, find_owning_tenant(email)):
        request.session.set_expiry(_EXTENSION_S)
