"""Keeps the session of an owner who changes sign-in settings, so that they can undo the change."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from uuid import UUID

from django.http import HttpRequest

from caret.foundation.ids import TenantId
from tenants.identity.domains.queries import find_owning_tenant
from tenants.identity.sso.queries import find_provider_id

_EXEMPTION_S: Final = 3600  # enough to test the change and undo it


@contextmanager
def exempt_session(request: HttpRequest, tenant_id: TenantId, email: str) -> Iterator[str | None]:
    """Yield the session key of the request, which the block passes to its operation.

    The operation ends the sessions of all users who must now sign in differently, except the
    session with this key. `email` is the address of the session's user. If that user must now sign
    in differently, their session expires in an hour.
    """
    provider_before = _find_provider_id(tenant_id, email)
    yield request.session.session_key
    if _find_provider_id(tenant_id, email) != provider_before:
        request.session.set_expiry(_EXEMPTION_S)


def _find_provider_id(tenant_id: TenantId, email: str) -> UUID | None:
    """Return the ID of the tenant's identity provider; None if the user does not sign in there."""
    return find_provider_id(tenant_id) if find_owning_tenant(email) == tenant_id else None
