"""Which groups of a report are too small to be shown, so that nobody is seen through a number.

1. A group of fewer than `min_users` people is suppressed. One without people (services) is not.
2. A total is shown beside its groups: what is suppressed must not be what is left when the others
   are taken from it. So at least two groups are suppressed, and their people together are
   `min_users` at least; the smallest of the others go with them until that holds.
3. Where groups overlap (teams), one that is another, or all, but for a few people is suppressed,
   too: the difference would be those few.

What it cannot prevent: the difference between two reports of different periods.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeVar

DEFAULT_MIN_USERS: Final = 5
_Key = TypeVar("_Key")
_People = frozenset[str]


class Suppression(StrEnum):
    SMALL = "fewer users than the tenant's minimum"
    COMPLEMENTARY = "so that a smaller group cannot be told by subtraction"


def suppressed(
    users_of: Mapping[_Key, _People], *, min_users: int, everybody: _People | None = None
) -> dict[_Key, Suppression]:
    """`users_of`: the people of each group. `everybody`: those of the total, where one may be in
    several groups with all that he did; None: what he did is in one of them."""
    found = {
        key: Suppression.SMALL for key, users in users_of.items() if 0 < len(users) < min_users
    }
    if everybody is not None:
        found |= _nearly_another(users_of, everybody, min_users)
    # Ties in the groups' own order: a report is the same each time it is made.
    others = sorted(
        (key for key in users_of if key not in found), key=lambda key: len(users_of[key])
    )
    while found and others and not _is_safe([users_of[key] for key in found], min_users):
        found[others.pop(0)] = Suppression.COMPLEMENTARY
    return found


def _nearly_another(
    users_of: Mapping[_Key, _People], everybody: _People, min_users: int
) -> dict[_Key, Suppression]:
    wholes = [everybody, *users_of.values()]
    return {
        key: Suppression.COMPLEMENTARY
        for key, users in users_of.items()
        if len(users) >= min_users
        and any(users < whole and len(whole - users) < min_users for whole in wholes)
    }


def _is_safe(hidden: list[_People], min_users: int) -> bool:
    people = _People().union(*hidden)
    return len(hidden) > 1 and len(people) >= min_users
