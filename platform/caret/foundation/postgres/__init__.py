"""Postgres as a wall between tenants: row security, the roles it binds, the scope it reads.

tenancy.py       who may be seen now: `tenant()` and `acting_user()`
row_security.py  what a table demands: policies and grants, written by migrations
roles.py         whether the wall holds for the role that we are
partitions.py    months of a partitioned table
router.py        the application's connection and the owner's
"""

from typing import Final

APP_ROLE: Final = "caret_app"  # owns nothing, bound by row security
OWNER_ROLE: Final = "caret_owner"  # owns the tables, runs migrations
OWNER_ALIAS: Final = "owner"
