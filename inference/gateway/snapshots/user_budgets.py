"""The prices and budgets of a snapshot that apply to one user.

They are made when the user first sends a request, and shared by users with the same budgets.
Neither a request nor a new snapshot has to search all budgets of the tenant.
"""

from collections import defaultdict
from typing import Final

import msgspec

from caret.contracts.pricing import BudgetScope, SpendingLimits, encode_indexes, read_places
from caret.foundation.ids import UserId


class SpendingByUser:
    def __init__(self, spending: SpendingLimits) -> None:
        self._spending: Final = spending
        self._of_user: Final = _as_older_ones_say(spending) or spending.budgets_of
        self._of_all: Final = frozenset(
            place
            for place, budget in enumerate(spending.budgets)
            if budget.scope is BudgetScope.TENANT
        )
        self._made: Final[dict[bytes, SpendingLimits]] = {}

    def for_user(self, user_id: UserId | None) -> SpendingLimits:
        """Return the same object for users with the same budgets, without user names.

        None: a service key, which belongs to no team.
        """
        written = b"" if user_id is None else self._of_user.get(user_id, b"")
        if written not in self._made:
            self._made[written] = self._decode(written)
        return self._made[written]

    def _decode(self, written: bytes) -> SpendingLimits:
        own = read_places(written, num_places=len(self._spending.budgets))
        budgets = [self._spending.budgets[place] for place in sorted(self._of_all.union(own))]
        return SpendingLimits(
            self._spending.prices,
            tuple(msgspec.structs.replace(budget, users=()) for budget in budgets),
        )


def _as_older_ones_say(spending: SpendingLimits) -> dict[UserId, bytes]:
    """Return the budgets of each user in the older format, where each budget lists its users."""
    found: defaultdict[UserId, set[int]] = defaultdict(set)
    for place, budget in enumerate(spending.budgets):
        if budget.scope is not BudgetScope.TENANT:
            for user_id in budget.users:
                found[user_id].add(place)
    return {user_id: encode_indexes(places) for user_id, places in found.items()}
