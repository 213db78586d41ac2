"""The limit on one user's hard budgets: each request makes a reservation in each of them."""

from uuid import UUID

import pytest

from caret.contracts.pricing import BudgetScope
from tenants.base.errors import Conflict
from tenants.billing.budgets import limits
from tenants.billing.budgets.operations import BudgetTarget, BudgetTerms, change_budget
from tenants.identity.teams.operations import add_team_member
from tests.fakes.billing import NOW, hard_budgets, make_budget, make_customer
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company
from tests.fixtures.users import make_team


@pytest.fixture
def company() -> Company:
    company = make_company("budgets", ACME_PEOPLE)
    make_customer(company)
    return company


@pytest.fixture
def team_targets(company: Company, monkeypatch: pytest.MonkeyPatch) -> list[BudgetTarget]:
    """Return three teams as targets of budgets.

    ada is in the first two, which have hard budgets. A user may be in at most two such teams here.
    """
    monkeypatch.setattr(limits, "MAX_TEAM_BUDGETS_OF_USER", 2)
    holders = [BudgetTarget(BudgetScope.TEAM, UUID(make_team(company))) for _ in range(3)]
    for holder in holders[:2]:
        _add_ada_to_team(company, holder)
        make_budget(company, holder=holder)
    return holders


def _add_ada_to_team(company: Company, holder: BudgetTarget) -> None:
    assert holder.id is not None
    ada = company.developer.user_id
    add_team_member(actor=company.platform, team_id=holder.id, user_id=ada, now=NOW)


def test_the_number_of_hard_team_budgets_per_user_is_limited(
    company: Company, team_targets: list[BudgetTarget]
) -> None:
    third_team = team_targets[2]
    _add_ada_to_team(company, third_team)

    with pytest.raises(Conflict, match="hard budgets of 3 teams; the limit is 2"):
        make_budget(company, holder=third_team)
    soft_budget = make_budget(company, holder=third_team, is_hard=False)
    with pytest.raises(Conflict, match="the limit is 2"):
        change_budget(
            actor=company.platform,
            budget_id=soft_budget.id,
            terms=BudgetTerms(limit_micros=5, is_hard=True),
            version=1,
            now=NOW,
        )

    assert len(hard_budgets(company)) == 2


def test_a_user_at_the_limit_cannot_join_another_team_with_a_hard_budget(
    company: Company, team_targets: list[BudgetTarget]
) -> None:
    third_team = team_targets[2]
    budget = make_budget(company, holder=third_team)

    with pytest.raises(Conflict, match="remove the user from a team"):
        _add_ada_to_team(company, third_team)

    assert hard_budgets(company)[str(budget.id)] == ()


def test_tenant_and_user_budgets_do_not_count_against_the_limit(
    company: Company, team_targets: list[BudgetTarget]
) -> None:
    make_budget(company)
    make_budget(company, holder=BudgetTarget(BudgetScope.USER, UUID(company.developer.user_id)))

    assert len(hard_budgets(company)) == 4  # of two teams, the tenant and the user
