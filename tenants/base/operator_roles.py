"""What operators of the platform may do: look, or look and change."""

from enum import StrEnum
from typing import Final


class OperatorRole(StrEnum):
    SUPPORT = "support"  # looks, at tenants with a reason
    ADMIN = "manager"  # also changes plan, status, region, limits and replicas


WRITE_ROLES: Final = frozenset({OperatorRole.ADMIN})
