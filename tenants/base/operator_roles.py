"""Roles of the platform's operators: read-only, or read and write."""

from enum import StrEnum
from typing import Final


class OperatorRole(StrEnum):
    SUPPORT = "support"  # read-only; needs a reason to view a tenant
    ADMIN = "admin"  # also changes plan, status, region, limits and replicas


WRITE_ROLES: Final = frozenset({OperatorRole.ADMIN})
