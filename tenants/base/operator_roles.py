"""Roles of the platform's operators, and scopes of operator keys: read-only, or read and write."""

from enum import StrEnum
from typing import Final


class OperatorRole(StrEnum):
    SUPPORT = "support"  # read-only; needs a reason to view a tenant
    ADMIN = "admin"  # also changes plan, status, region, limits and replicas


class OperatorScope(StrEnum):
    """A scope of an operator key."""

    READ_TENANTS = "tenants.read"
    WRITE_TENANTS = "tenants.write"


WRITE_ROLES: Final = frozenset({OperatorRole.ADMIN})
