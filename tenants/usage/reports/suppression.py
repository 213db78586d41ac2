"""Which groups of a report are too small to be shown, so that nobody is seen through a number.

1. A group of fewer than `min_users` people is suppressed. One without people (services) is not.
2. A total is shown beside its groups: what is suppressed must not be what is left when the others
   are taken from it. So at least two groups are suppressed, and their people together are
   `min_users` at least; the smallest of the others go with them until that holds.
3. Where groups overlap (teams), one that is another, or all, but for a few is suppressed, too: the
   difference would be those few. So are groups
   - that together are all but a few: what is left of the total would be those few, whatever else
     the suppressed groups hold;
   - two of which and the total tell of a few: those who are in both, or in neither.

What it cannot prevent: the difference between two reports of different periods; three groups, or
more, that overlap so that adding and subtracting them leaves a few. Where several things are asked
about at once, `parts` looks at groups in all directions.
"""

from collections.abc import Mapping
from enum import StrEnum
from itertools import combinations
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

DEFAULT_MIN_USERS: Final = 5
_Key = TypeVar("_Key")
_People = frozenset[str]
_NOTHING: Final[Mapping[Any, "Suppression"]] = MappingProxyType({})


class Suppression(StrEnum):
    TOO_FEW_USERS = "fewer users than the tenant's minimum"
    COMPLEMENTARY = "so that a smaller group cannot be told by subtraction"


def find_suppressed_groups(
    users_of: Mapping[_Key, _People],
    *,
    min_users: int,
    everybody: _People | None = None,
    hidden: Mapping[_Key, Suppression] = _NOTHING,
) -> dict[_Key, Suppression]:
    """`users_of`: the people of each group. `everybody`: those of the total, where one may be in
    several groups with all that he did; None: what he did is in one of them. `hidden`: what is not
    to be told for other reasons, nor by subtraction."""
    found = dict(hidden) | {
        key: Suppression.TOO_FEW_USERS
        for key, users in users_of.items()
        if 0 < len(users) < min_users
    }
    if everybody is not None:
        found = _nearly_another(users_of, everybody, min_users) | found
    # Ties in the groups' own order: a report is the same each time it is made.
    shown = sorted(
        (key for key in users_of if key not in found), key=lambda key: len(users_of[key])
    )
    overlap = None if everybody is None else _Overlap(users_of, everybody, min_users)
    told: _Key | None
    while shown:
        if not _is_safe([users_of[key] for key in found], min_users):
            told = shown[0]
        elif overlap is None or (told := overlap.find_disclosed(shown)) is None:
            break
        shown.remove(told)
        found[told] = Suppression.COMPLEMENTARY
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


class _Overlap(Generic[_Key]):
    """What groups that overlap tell of together."""

    def __init__(
        self, users_of: Mapping[_Key, _People], everybody: _People, min_users: int
    ) -> None:
        self._users_of = users_of
        self._everybody = everybody
        self._min_users = min_users
        by_size = sorted(users_of, key=lambda key: len(users_of[key]))
        self._pairs = [pair for pair in combinations(by_size, 2) if self._discloses(*pair)]

    def find_disclosed(self, shown: list[_Key]) -> _Key | None:
        """The smallest of those that tell of a few. None: they do not."""
        rest = self._everybody.difference(*(self._users_of[key] for key in shown))
        if 0 < len(rest) < self._min_users:
            return shown[0]
        return next((one for one, other in self._pairs if one in shown and other in shown), None)

    def _discloses(self, one: _Key, other: _Key) -> bool:
        """The total without both: who is in one of them is gone, who is in both is there with a
        minus, who is in neither with a plus."""
        these, those = self._users_of[one], self._users_of[other]
        # Spares the comparison of most pairs, which are far smaller than the total.
        if len(these) + len(those) <= len(self._everybody) - self._min_users:
            return False
        return 0 < len(self._everybody) - len(these ^ those) < self._min_users


def _is_safe(hidden: list[_People], min_users: int) -> bool:
    if not hidden:
        return True
    people = _People().union(*hidden)
    return len(hidden) > 1 and len(people) >= min_users
