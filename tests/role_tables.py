"""Tables of the HTTP status that each role gets, and their boundary.

The boundary is the weakest role that is allowed and the strongest that is refused. The default
suite sends HTTP requests only as these two; the deep suite (`make test-deep`) sends them as
all roles.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import pytest

from tenants.base.permissions import Role

STRONGEST_FIRST: Final = (
    Role.OWNER,
    Role.ADMINISTRATOR,
    Role.AUDITOR,
    Role.BILLING,
    Role.DEVELOPER,
)
Statuses = Mapping[Role, int]


def only_for(
    *roles: Role, status: int = HTTPStatus.OK, otherwise: int = HTTPStatus.FORBIDDEN
) -> dict[Role, int]:
    """Return a table in which `roles` get `status`, and the other roles get `otherwise`."""
    return {role: status if role in roles else otherwise for role in Role}


def boundary(statuses: Statuses) -> list[Role]:
    """Return the weakest role that is allowed and the strongest that is refused, if they exist."""
    # A conflict counts as allowed, because the permission is checked before conflicts.
    allowed = [
        role
        for role in STRONGEST_FIRST
        if statuses[role] < HTTPStatus.BAD_REQUEST or statuses[role] == HTTPStatus.CONFLICT
    ]
    denied_roles = [role for role in STRONGEST_FIRST if role not in allowed]
    return [*allowed[-1:], *denied_roles[:1]]


def role_cases(table: Mapping[str, tuple[Any, Statuses]]) -> list[Any]:
    """Return parameters for each name of `table` and each role: the name's value, and the role.

    Only the deep suite uses the parameters with roles outside of the boundary.
    """
    return [
        pytest.param(
            value,
            role,
            marks=() if role in boundary(statuses) else pytest.mark.deep,
            id=f"{name}-{role}",
        )
        for name, (value, statuses) in table.items()
        for role in STRONGEST_FIRST
    ]
