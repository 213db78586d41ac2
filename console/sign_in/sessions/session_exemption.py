"""Keeps the session of an owner who changes sign-in settings, so that they can undo the change."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.http import HttpRequest

from caret.foundation.ids import TenantId
from tenants.identity.domains.queries import find_owning_tenant

_EXEMPTION_S: Final = 3600  # enough to test the change and undo it


@contextmanager
def exempt_session(request: HttpRequest, tenant_id: TenantId, email: str) -> Iterator[str | None]:
    """Yield the session key of the request. The change in the block must not end this session.

    `email` is the user's address. If the tenant owns its domain before or after the block, the
    change has ended all other sessions of the domain's users. This one then expires in an hour.
    """
    owner_before = find_owning_tenant(email)
    yield request.session.session_key
    if tenant_id in (owner_before, find_owning_tenant(email)):
        request.session.set_expiry(_EXEMPTION_S)
