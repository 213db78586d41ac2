"""Suppression of small groups in reports, so that numbers reveal no single user.

1. A group of fewer than `min_users` users is suppressed. A group without users (only service keys)
   is not.
2. The total is shown beside its groups, so a suppressed group must not be the difference between
   total and shown groups. Therefore, if one group is suppressed, at least two are, and together
   they have at least `min_users` users. The smallest shown groups are added until this holds.
3. Teams overlap. A group that consists of all users of another group, or of the total, except a
   few, is suppressed, because the difference would reveal these few users. Groups are also
   suppressed if
   - the shown groups together contain all users except a few: the total minus the shown groups
     would reveal these few users;
   - two shown groups and the total reveal a few users: those in both groups, or in neither.

"A few" means at least one, but fewer than `min_users`. These rules do not prevent a reader from
comparing reports of different periods, or from combining three or more overlapping groups. The
module `cells` has the rules for several dimensions at once.
"""

from collections.abc import Mapping
from enum import StrEnum
from itertools import combinations
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

_Key = TypeVar("_Key")
_People = frozenset[str]
_NOTHING: Final[Mapping[Any, "Suppression"]] = MappingProxyType({})


class Suppression(StrEnum):
    TOO_FEW_USERS = "fewer users than the tenant's minimum"
    COMPLEMENTARY = "so that subtraction does not reveal a smaller group"


def find_suppressed_groups(
    users_of: Mapping[_Key, _People],
    *,
    min_users: int,
    all_users: _People | None = None,
    already_suppressed: Mapping[_Key, Suppression] = _NOTHING,
) -> dict[_Key, Suppression]:
    """Return the suppressed groups and why.

    `users_of` contains the users of each group. If groups overlap, so that the same usage counts in
    several groups, `all_users` are the users of the total; None: groups do not overlap. Groups in
    `already_suppressed` stay suppressed, and no difference may reveal them.
    """
    suppressed = dict(already_suppressed) | {
        key: Suppression.TOO_FEW_USERS
        for key, users in users_of.items()
        if 0 < len(users) < min_users
    }
    if all_users is not None:
        suppressed = _find_near_duplicates(users_of, all_users, min_users) | suppressed
    # Ties keep the order of the groups, so that a report is the same each time.
    visible = sorted(
        (key for key in users_of if key not in suppressed), key=lambda key: len(users_of[key])
    )
    overlap = None if all_users is None else _Overlap(users_of, all_users, min_users)
    next_suppressed: _Key | None
    # Suppress one group after the other, the smallest first, until rules 2 and 3 are met.
    while visible:
        if not _is_safe([users_of[key] for key in suppressed], min_users):
            next_suppressed = visible[0]
        else:
            next_suppressed = None if overlap is None else overlap.find_group_to_suppress(visible)
        if next_suppressed is None:
            break
        visible.remove(next_suppressed)
        suppressed[next_suppressed] = Suppression.COMPLEMENTARY
    return suppressed


def _find_near_duplicates(
    users_of: Mapping[_Key, _People], all_users: _People, min_users: int
) -> dict[_Key, Suppression]:
    """Return the groups that consist of all users of another group or the total, except a few."""
    wholes = [all_users, *users_of.values()]
    return {
        key: Suppression.COMPLEMENTARY
        for key, users in users_of.items()
        if len(users) >= min_users
        and any(users < whole and len(whole - users) < min_users for whole in wholes)
    }


class _Overlap(Generic[_Key]):
    """Inferences from overlapping groups."""

    def __init__(
        self, users_of: Mapping[_Key, _People], all_users: _People, min_users: int
    ) -> None:
        self._users_of = users_of
        self._all_users = all_users
        self._min_users = min_users
        by_size = sorted(users_of, key=lambda key: len(users_of[key]))
        self._pairs = [pair for pair in combinations(by_size, 2) if self._discloses(*pair)]

    def find_group_to_suppress(self, visible: list[_Key]) -> _Key | None:
        """Return the shown group to suppress next, because shown groups reveal a few users.

        None: they reveal nobody.
        """
        remaining_users = self._all_users.difference(*(self._users_of[key] for key in visible))
        if 0 < len(remaining_users) < self._min_users:
            return visible[0]
        return next(
            (
                group
                for group, other_group in self._pairs
                if group in visible and other_group in visible
            ),
            None,
        )

    def _discloses(self, group: _Key, other_group: _Key) -> bool:
        """Return whether the total minus both groups reveals a few users.

        In this difference, users in exactly one of the groups cancel out. The usage of users in
        both groups counts negatively, and that of users in neither counts positively.
        """
        users, other_users = self._users_of[group], self._users_of[other_group]
        # Most pairs are far smaller than the total: skip them without building a set.
        if len(users) + len(other_users) <= len(self._all_users) - self._min_users:
            return False
        return 0 < len(self._all_users) - len(users ^ other_users) < self._min_users


def _is_safe(suppressed: list[_People], min_users: int) -> bool:
    """Return whether rule 2 is met."""
    if not suppressed:
        return True
    people = _People().union(*suppressed)
    return len(suppressed) > 1 and len(people) >= min_users
