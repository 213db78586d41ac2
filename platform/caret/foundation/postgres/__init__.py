"""Postgres: isolation of tenants by row-level security, migrations and backups.

tenant_scope.py        sets the tenant, user or lookup ID whose rows are visible
row_security.py        policies and grants of a table, created by migrations
roles.py               checks that row-level security binds the current role
database_router.py     chooses the application's or the owner's connection
partitions.py          monthly partitions of a table
partitioned_index.py   indexes of partitioned tables, built while the tables are in use
lock_retry.py          migrations that wait only briefly for a lock, and try again
create_models.py       one migration operation that creates many models
rename_columns.py      one migration operation that renames many columns
backup.py              backups: the data, and the encryption keys that decrypt it
"""

from typing import Final

APP_ROLE: Final = "caret_app"  # owns nothing, bound by row-level security
OWNER_ROLE: Final = "caret_owner"  # owns the tables, runs migrations
OWNER_ALIAS: Final = "owner"  # Django's alias for the connection of the owner role
