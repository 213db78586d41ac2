"""The users of a budget, in the current format and in the previous one."""

from uuid import UUID

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from caret.contracts.pricing import BudgetScope, HardBudget, SpendingLimits, encode_indexes
from caret.contracts.snapshot import TenantSnapshot, decode_snapshot, encode_snapshot
from caret.foundation.ids import UserId
from inference.gateway.snapshots.snapshot_store import UserBudgets
from tests.fakes.tenants import make_snapshot

PEOPLE = tuple(UserId(str(UUID(int=number))) for number in range(5))
Budgeted = list[tuple[BudgetScope, frozenset[UserId]]]
budgeted = st.lists(
    st.tuples(st.sampled_from(BudgetScope), st.frozensets(st.sampled_from(PEOPLE))), max_size=20
)


def _older(budgets: Budgeted) -> SpendingLimits:
    """Return the limits in the previous format: each budget with its users."""
    return SpendingLimits(
        budgets=tuple(
            HardBudget(f"b{place}", scope, 1, tuple(sorted(people)))
            for place, (scope, people) in enumerate(budgets)
        )
    )


def _newer(budgets: Budgeted) -> SpendingLimits:
    of_somebody = [
        frozenset[UserId]() if scope is BudgetScope.TENANT else people for scope, people in budgets
    ]
    return SpendingLimits(
        budgets=tuple(
            HardBudget(f"b{place}", scope, 1) for place, (scope, _) in enumerate(budgets)
        ),
        budgets_of={
            user: encode_indexes(
                place for place, people in enumerate(of_somebody) if user in people
            )
            for user in sorted(frozenset[UserId]().union(*of_somebody))
        },
    )


def _read(spending: SpendingLimits) -> UserBudgets:
    """Return the spending as a gateway reads it from Redis."""
    data = encode_snapshot(make_snapshot(spending=spending))
    return UserBudgets(decode_snapshot(data).spending)


@given(budgeted)
def test_both_forms_say_the_same_of_everybody(budgets: Budgeted) -> None:
    older, newer = _read(_older(budgets)), _read(_newer(budgets))

    for user in (*PEOPLE, None):
        concern = [
            f"b{place}"
            for place, (scope, people) in enumerate(budgets)
            if scope is BudgetScope.TENANT or user in people
        ]
        assert [each.budget_id for each in newer.for_user(user).budgets] == concern
        assert older.for_user(user) == newer.for_user(user)


def test_who_has_the_same_budgets_shares_them() -> None:
    spending = _read(_newer([(BudgetScope.TEAM, frozenset(PEOPLE[:2]))]))

    assert spending.for_user(PEOPLE[0]) is spending.for_user(PEOPLE[1])
    assert spending.for_user(PEOPLE[2]) is spending.for_user(None)


def test_a_place_that_there_is_not_is_passed_over() -> None:
    budget = HardBudget("b0", BudgetScope.USER, 1)
    spending = UserBudgets(SpendingLimits((), (budget,), {PEOPLE[0]: encode_indexes([0, 1, 900])}))

    assert spending.for_user(PEOPLE[0]).budgets == (budget,)


def test_each_of_many_people_in_many_teams_is_named_once() -> None:
    """A gateway decodes this on its event loop: with the users of each budget it was 76 MB."""
    people = [UserId(str(UUID(int=number))) for number in range(2_000)]
    budgets = tuple(HardBudget(f"{n:036}", BudgetScope.TEAM, 10**9) for n in range(1_000))
    places = dict.fromkeys(people, encode_indexes(range(1_000)))

    data = encode_snapshot(make_snapshot(spending=SpendingLimits((), budgets, places)))

    assert len(data) < 500_000


def test_of_a_tenant_without_budgets_gateways_of_before_can_read_the_snapshot() -> None:
    written = msgspec.msgpack.decode(encode_snapshot(make_snapshot(spending=SpendingLimits())))

    assert written.get("spending", {}) == {}
    assert isinstance(decode_snapshot(msgspec.msgpack.encode(written)), TenantSnapshot)
