"""Budgets: the spending that counts for each budget, and the URLs and secrets of webhooks."""

from uuid import UUID

import pytest

from caret.contracts.pricing import BudgetScope
from tenants.base.errors import InvalidValue
from tenants.billing.budgets.month_spend import TenantMonthSpend
from tenants.billing.budgets.webhook import check_webhook_address, derive_webhook_secret
from tenants.models import Budget

_ADA, _BOB, _TEAM, _EMPTY_TEAM = (UUID(int=number) for number in range(4))


@pytest.mark.parametrize(
    ("scope", "holder", "spent"),
    [
        (BudgetScope.TENANT, None, 111),
        (BudgetScope.USER, _ADA, 100),
        (BudgetScope.TEAM, _TEAM, 110),
        (BudgetScope.TEAM, _EMPTY_TEAM, 0),
    ],
)
def test_a_budget_counts_only_the_spending_of_its_users(
    scope: BudgetScope, holder: UUID | None, spent: int
) -> None:
    ada, bob = str(_ADA), str(_BOB)
    month = TenantMonthSpend(
        by_holder={ada: 100, bob: 10, "": 1},  # "": usage without a user
        members=frozenset({ada, bob}),
        teams={_TEAM: frozenset({ada, bob}), _EMPTY_TEAM: frozenset()},
    )

    assert month.spent_of_budget(Budget(scope=scope, holder_id=holder)) == spent


def test_each_budget_of_each_tenant_has_its_own_webhook_secret() -> None:
    budgets = [(tenant, budget) for tenant in ("acme", "globex") for budget in ("019a-1", "019a-2")]

    assert len({derive_webhook_secret(*budget) for budget in budgets}) == len(budgets)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("https://example.com/a b", "at most 500 ASCII characters, without spaces"),
        ("https://example.com/ä", "at most 500 ASCII characters, without spaces"),
        ("http://example.com/a", "starts with https://"),
    ],
)
def test_the_error_of_an_invalid_webhook_url_says_what_is_wrong(url: str, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        check_webhook_address(url)
