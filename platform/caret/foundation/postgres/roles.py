"""Checks that row-level security binds the current role; otherwise the process does not start.

A superuser and a role with BYPASSRLS ignore every row policy. The owner of a table can switch its
policies off. A role that is a member of such a role can assume it.
"""

from collections.abc import Sequence
from typing import Any

from django.core import checks
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from caret.foundation.postgres import OWNER_ALIAS

# For each role that the session may assume: whether it is a superuser, has BYPASSRLS, or owns
# tables. Each of these powers bypasses row-level security.
_POWERS_SQL = """
SELECT DISTINCT r.rolname, r.rolsuper, r.rolbypassrls, EXISTS (
    SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relowner = r.oid AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
) AS owns
FROM pg_roles r
WHERE pg_has_role(current_user, r.oid, 'MEMBER') OR pg_has_role(session_user, r.oid, 'MEMBER')
"""


class RoleBypassesRls(Exception):
    """The application's database role could bypass tenant isolation."""


def require_rls_bound_role() -> None:
    """Check the role of the `default` connection.

    Raises RoleBypassesRls with instructions if row-level security does not bind this process.
    """
    if powers := find_rls_bypasses(connections["default"]):
        raise RoleBypassesRls(
            f"DATABASE_URL names a role that can bypass row-level security: {'; '.join(powers)}. "
            "Use a role without these powers, such as caret_app."
        )


def find_rls_bypasses(connection: BaseDatabaseWrapper) -> list[str]:
    """Return a short text for each way in which the current role can bypass row-level security.

    An example of a text is "caret_owner owns tables". Makes one query.
    """
    with connection.cursor() as cursor:
        cursor.execute(_POWERS_SQL)
        rows = cursor.fetchall()
    powers = []
    for name, is_superuser, bypasses, owns in sorted(rows):
        if is_superuser:
            powers.append(f"{name} is a superuser")
        if bypasses:
            powers.append(f"{name} has BYPASSRLS")
        if owns:
            powers.append(f"{name} owns tables")
    return powers


@checks.register(checks.Tags.database)
def check_bound_role(
    *, databases: Sequence[str] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """Let `manage.py check --database default` fail for a role that is too powerful."""
    # The connection `owner` is left out: its role owns the tables, and only migrations use it.
    return [
        checks.Error(f"{power} (database {alias!r}).", id="caret.E001")
        for alias in databases or []
        if alias != OWNER_ALIAS
        for power in find_rls_bypasses(connections[alias])
    ]
