"""Roles of operators, and scopes of the operator keys with which scripts use the REST API."""

from enum import StrEnum
from typing import Final


class OperatorRole(StrEnum):
    SUPPORT = "support"  # read-only; needs a reason to view a tenant
    ADMIN = "admin"  # may also make changes, for example of tenants and pools


class OperatorScope(StrEnum):
    READ_TENANTS = "tenants.read"
    WRITE_TENANTS = "tenants.write"


WRITE_ROLES: Final = frozenset({OperatorRole.ADMIN})
