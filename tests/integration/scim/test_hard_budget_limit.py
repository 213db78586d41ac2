"""A user cannot join a group if too many hard budgets of teams would then apply to the user."""

from uuid import UUID

import pytest

from caret.contracts.pricing import BudgetScope
from tenants.billing.budgets import limits
from tenants.billing.budgets.operations import BudgetTarget
from tests.fakes.billing import make_budget, make_customer
from tests.fixtures.companies import Company
from tests.integration.scim.provider import Provider


def test_a_user_cannot_join_a_group_above_the_limit_of_hard_budgets(
    company: Company, provider: Provider, domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_TEAM_BUDGETS_OF_USER", 1)
    make_customer(company)
    group_ids = [provider.create_group(name)["id"] for name in ("Platform", "Search")]
    for group_id in group_ids:
        make_budget(company, holder=BudgetTarget(BudgetScope.TEAM, UUID(group_id)))
    ada_id = provider.create_user(f"ada@{domain}")["id"]
    join = {"op": "add", "path": "members", "value": [{"value": ada_id}]}

    responses = [provider.patch(f"Groups/{group_id}", join) for group_id in group_ids]

    assert [response.status_code for response in responses] == [200, 409]
    assert "hard budgets of 2 teams; the limit is 1" in responses[1].json()["detail"]
    user = provider.request("GET", f"Users/{ada_id}").json()
    assert [group["value"] for group in user["groups"]] == group_ids[:1]
