"""The budgets of each user in a snapshot, in the current format and in the previous one."""

from uuid import UUID

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from caret.contracts.pricing import BudgetScope, HardBudget, SpendingLimits, encode_indexes
from caret.contracts.snapshot import TenantSnapshot, decode_snapshot, encode_snapshot
from caret.foundation.ids import UserId
from inference.gateway.snapshots.snapshot_store import UserBudgets
from tests.fakes.tenants import make_snapshot

USERS = tuple(UserId(str(UUID(int=number))) for number in range(5))
# For each budget: its scope and its users.
BudgetEntries = list[tuple[BudgetScope, frozenset[UserId]]]
budget_entries = st.lists(
    st.tuples(st.sampled_from(BudgetScope), st.frozensets(st.sampled_from(USERS))), max_size=20
)


def _previous_format(budgets: BudgetEntries) -> SpendingLimits:
    """Return the limits in the previous format: each budget with its users."""
    return SpendingLimits(
        budgets=tuple(
            HardBudget(f"b{index}", scope, 1, tuple(sorted(users)))
            for index, (scope, users) in enumerate(budgets)
        )
    )


def _current_format(budgets: BudgetEntries) -> SpendingLimits:
    users_of_budgets = [
        frozenset[UserId]() if scope is BudgetScope.TENANT else users for scope, users in budgets
    ]
    return SpendingLimits(
        budgets=tuple(
            HardBudget(f"b{index}", scope, 1) for index, (scope, _) in enumerate(budgets)
        ),
        budgets_of={
            user: encode_indexes(
                index for index, users in enumerate(users_of_budgets) if user in users
            )
            for user in sorted(frozenset[UserId]().union(*users_of_budgets))
        },
    )


def _read_budgets(spending: SpendingLimits) -> UserBudgets:
    """Return the spending as a gateway reads it from Redis."""
    data = encode_snapshot(make_snapshot(spending=spending))
    return UserBudgets(decode_snapshot(data).spending)


@given(budget_entries)
def test_both_formats_give_every_user_the_same_budgets(budgets: BudgetEntries) -> None:
    older, newer = _read_budgets(_previous_format(budgets)), _read_budgets(_current_format(budgets))

    for user in (*USERS, None):
        expected = [
            f"b{index}"
            for index, (scope, users) in enumerate(budgets)
            if scope is BudgetScope.TENANT or user in users
        ]
        assert [budget.budget_id for budget in newer.for_user(user).budgets] == expected
        assert older.for_user(user) == newer.for_user(user)


def test_users_with_the_same_budgets_share_them() -> None:
    spending = _read_budgets(_current_format([(BudgetScope.TEAM, frozenset(USERS[:2]))]))

    assert spending.for_user(USERS[0]) is spending.for_user(USERS[1])
    assert spending.for_user(USERS[2]) is spending.for_user(None)


def test_an_index_out_of_range_is_ignored() -> None:
    budget = HardBudget("b0", BudgetScope.USER, 1)
    spending = UserBudgets(SpendingLimits((), (budget,), {USERS[0]: encode_indexes([0, 1, 900])}))

    assert spending.for_user(USERS[0]).budgets == (budget,)


def test_each_user_of_many_budgets_is_stored_once() -> None:
    """Gateways decode snapshots on their event loop.

    When each budget listed its users, this snapshot had 76 MB.
    """
    users = [UserId(str(UUID(int=number))) for number in range(2_000)]
    budgets = tuple(HardBudget(f"{n:036}", BudgetScope.TEAM, 10**9) for n in range(1_000))
    encoded_indexes = dict.fromkeys(users, encode_indexes(range(1_000)))

    data = encode_snapshot(make_snapshot(spending=SpendingLimits((), budgets, encoded_indexes)))

    assert len(data) < 500_000


def test_a_snapshot_without_budgets_is_readable_by_the_previous_release() -> None:
    # The previous release rejects fields that it does not know, such as `budgets_of`.
    document = msgspec.msgpack.decode(encode_snapshot(make_snapshot(spending=SpendingLimits())))

    assert document.get("spending", {}) == {}
    assert isinstance(decode_snapshot(msgspec.msgpack.encode(document)), TenantSnapshot)
