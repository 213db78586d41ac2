"""What a snapshot says of spending, as it is for one user: its prices, and the budgets that count
what he spends. Made once for a snapshot, so that no request looks through all of a tenant's."""

from collections import defaultdict
from collections.abc import Set
from typing import Final

import msgspec

from caret.contracts.spending import BudgetScope, Spending
from caret.foundation.ids import UserId


class SpendingByUser:
    def __init__(self, spending: Spending, users: Set[UserId]) -> None:
        """`users`: all that will be asked about. One pass over the members of all budgets."""
        # A budget says who is in it by thousands; whom it concerns needs it no more.
        self._budgets: Final = tuple(
            msgspec.structs.replace(budget, users=()) for budget in spending.budgets
        )
        self._prices: Final = spending.prices
        self._of_all: Final = tuple(
            place
            for place, budget in enumerate(spending.budgets)
            if budget.scope is BudgetScope.TENANT
        )
        self._of_user: Final[dict[UserId, tuple[int, ...]]] = self._read(spending, users)
        self._by_places: Final[dict[tuple[int, ...], Spending]] = {}

    def places(self, user_id: UserId | None) -> tuple[int, ...]:
        """Of the budgets that concern him, in order; None: a service key, which is in no team."""
        return self._of_all if user_id is None else self._of_user.get(user_id, self._of_all)

    def at(self, places: tuple[int, ...]) -> Spending:
        """Without the names of users; the same object for the same places."""
        if places not in self._by_places:
            budgets = tuple(self._budgets[place] for place in places)
            self._by_places[places] = Spending(self._prices, budgets)
        return self._by_places[places]

    def _read(self, spending: Spending, users: Set[UserId]) -> dict[UserId, tuple[int, ...]]:
        found: defaultdict[UserId, list[int]] = defaultdict(list)
        for place, budget in enumerate(spending.budgets):
            if budget.scope is not BudgetScope.TENANT:
                for user in users & frozenset(budget.users):
                    found[user].append(place)
        return {user: tuple(sorted((*self._of_all, *places))) for user, places in found.items()}
