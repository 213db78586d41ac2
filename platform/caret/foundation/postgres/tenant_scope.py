"""Scopes: transactions that see only the rows of one tenant, one user or one lookup ID.

1. The scope is a transaction-local setting of Postgres, so a connection pool or pgbouncer cannot
   pass it on to another request. Postgres compares it with each row (see row_security.py).
2. A query of a tenant's table without a scope is an error, not an empty result. Only a table with
   `RowSecurity.user_column` returns no rows.
3. The tenant, user or lookup ID of a scope never changes. Inside a scope, opening a scope with
   another tenant, user or lookup ID raises ScopeConflict.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from django.db import connection, transaction

from caret.foundation.ids import LookupId, TenantId, UserId

TENANT_SETTING: Final = "caret.tenant"
USER_SETTING: Final = "caret.user"
LOOKUP_SETTING: Final = "caret.lookup"

_tenant: ContextVar[str | None] = ContextVar("caret.tenant", default=None)
_user: ContextVar[str | None] = ContextVar("caret.user", default=None)
_lookup: ContextVar[str | None] = ContextVar("caret.lookup", default=None)


class ScopeConflict(Exception):
    """Code in the scope of one tenant, user or lookup ID tried to open the scope of another."""


@contextmanager
def tenant_scope(tenant_id: TenantId) -> Iterator[None]:
    """Run a transaction that sees only the rows of `tenant_id`.

    Raises ScopeConflict inside another tenant's scope.
    """
    with _scope(TENANT_SETTING, _tenant, tenant_id):
        yield


@contextmanager
def user_scope(user_id: UserId) -> Iterator[None]:
    """Run a transaction that sees the memberships of `user_id`, before a tenant is chosen.

    Raises ScopeConflict inside another user's scope.
    """
    with _scope(USER_SETTING, _user, user_id):
        yield


@contextmanager
def key_lookup_scope(lookup_id: LookupId) -> Iterator[None]:
    """Run a transaction that sees the API keys with a lookup ID, before their tenant is known.

    Raises ScopeConflict inside another lookup ID's scope.
    """
    with _scope(LOOKUP_SETTING, _lookup, lookup_id):
        yield


def current_tenant() -> TenantId | None:
    value = _tenant.get()
    return None if value is None else TenantId(value)


@contextmanager
def _scope(setting: str, variable: ContextVar[str | None], value: str) -> Iterator[None]:
    outer_value = variable.get()
    if outer_value not in (None, value):
        raise ScopeConflict(f"{setting} already has another value in this scope.")
    is_nested = connection.in_atomic_block
    with transaction.atomic():
        # Set it even if `variable` already has this value: the context may have been copied to a
        # task that uses another connection.
        _set_local(setting, value)
        token = variable.set(value)
        try:
            yield
        finally:
            # Still inside the transaction, so that on-commit callbacks start without this scope.
            variable.reset(token)
        if is_nested and outer_value != value:
            # A released savepoint keeps SET LOCAL; only a rollback reverts it.
            _set_local(setting, outer_value or "")


def _set_local(setting: str, value: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config(%s, %s, true)", [setting, value])
