"""What a snapshot says of spending, as it is for one user: its prices, and the budgets that count
what he spends. Made when he first comes, and once for all who have the same, so that neither a
request nor the reading of a snapshot looks through all of a tenant's."""

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
        """Without the names of users; the same object for those with the same budgets. None: a
        service key, which is in no team."""
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
    """Each budget names its users. Nothing, of a snapshot that says it the other way round."""
    found: defaultdict[UserId, set[int]] = defaultdict(set)
    for place, budget in enumerate(spending.budgets):
        if budget.scope is not BudgetScope.TENANT:
            for user_id in budget.users:
                found[user_id].add(place)
    return {user_id: encode_indexes(places) for user_id, places in found.items()}
