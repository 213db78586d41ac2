"""Sparing the session of whoever changes how people sign in: a mistake can be mended by it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.http import HttpRequest

from caret.foundation.ids import TenantId
from tenants.identity.domains.queries import find_owning_tenant

_MENDING_S: Final = 3600


@contextmanager
def exempt_session(request: HttpRequest, tenant_id: TenantId, email: str) -> Iterator[str | None]:
    """Its key. Where the change would have ended the session, it goes on for an hour."""
    before = find_owning_tenant(email)
    yield request.session.session_key
    if tenant_id in (before, find_owning_tenant(email)):
        request.session.set_expiry(_MENDING_S)
