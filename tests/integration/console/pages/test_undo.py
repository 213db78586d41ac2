"""The undo button of a success message restores the previous value, unless it has changed since."""

import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from html import unescape
from ipaddress import ip_network
from typing import Any, Final

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.billing.budgets.queries import read_page_of_budgets
from tenants.identity.teams.queries import find_team
from tenants.models import AuditEntry, RetentionRule
from tenants.policy.data_classes import DataClass
from tenants.policy.overrides.queries import load_effective_policy
from tenants.policy.queries import find_policy_in_force
from tenants.privacy.retention.queries import find_rule
from tests.fakes.billing import make_budget, make_old_customer
from tests.fixtures.companies import Cast, Company
from tests.fixtures.users import make_team
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.override_forms import save_override

# The path of a form whose button is "Undo".
_UNDO: Final = re.compile(r'<form method="post" action="([^"]+)">.*?>Undo</button>')


@pytest.fixture
def company() -> Company:
    return make_old_customer(datetime(2026, 9, 1, tzinfo=UTC))


@pytest.fixture
def owner(company: Company, sign_in_with_step_up: SignIn) -> Client:
    """Return the owner's browser."""
    return sign_in_with_step_up(company.people[Role.OWNER])


@dataclass(frozen=True, slots=True)
class UndoCase:
    change: Callable[[str], Any]  # submits a form with this value, and returns the resulting page
    state: Callable[[], object]  # returns what an undo must restore
    values: tuple[str, str]  # two values for `change`


def make_budget_case(company: Company, owner: Client) -> UndoCase:
    budget = make_budget(company, webhook_url="https://hooks.example.com/a")

    def current_budget() -> Any:
        actor = company.administrator.actor
        (current,) = read_page_of_budgets(
            actor=actor, limit=2, cursor=None, now=timezone.now()
        ).rows
        return current

    def change(limit: str) -> Any:
        form = {
            "limit": limit,
            "is_hard": "",
            "webhook_url": "",
            "version": str(current_budget().version),
        }
        return owner.post(f"/budgets/{budget.id}/edit", form, follow=True)

    def state() -> object:
        return current_budget().limit_micros, current_budget().is_hard, current_budget().webhook_url

    return UndoCase(change, state, ("20", "30"))


def make_team_case(company: Company, owner: Client) -> UndoCase:
    team_id = make_team(company, "Anvil")

    def state() -> object:
        return find_team(actor=company.platform, team_id=uuid.UUID(team_id)).name

    def change(name: str) -> Any:
        return owner.post(f"/teams/{team_id}/rename", {"name": name}, follow=True)

    # The spaces are not stored, and pages escape the ampersand.
    return UndoCase(change, state, (" Fire & Ice ", "Hammer"))


def make_retention_case(company: Company, owner: Client) -> UndoCase:
    def state() -> object:
        rule = find_rule(actor=company.administrator.actor, data_class=DataClass.USAGE)
        page = owner.get("/retention").content.decode()
        return rule.days, rule.is_default, page.count(">Default<"), page.count(">Custom<")

    def change(days: str) -> Any:
        rule = find_rule(actor=company.administrator.actor, data_class=DataClass.USAGE)
        form = {
            "days": days,
            "reason": "r",
            "expected_version": str(rule.version or 0),  # 0: no rule yet
        }
        return owner.post("/retention/classes/usage_records", form, follow=True)

    return UndoCase(change, state, ("90", "100"))


def make_override_case(company: Company, owner: Client) -> UndoCase:
    ada = company.developer

    def state() -> object:
        return load_effective_policy(tenant_id=company.tenant_id, user_id=UserId(ada.user_id))

    def change(per_minute: str) -> Any:
        save_override(owner, ada, user_limit_per_minute=per_minute, user_limit_burst="6")
        return owner.get("/policies/overrides")

    assert state() == find_policy_in_force(tenant_id=company.tenant_id).policy  # no override yet
    return UndoCase(change, state, ("60", "70"))


@pytest.fixture(
    params=[make_budget_case, make_team_case, make_retention_case, make_override_case],
    ids=lambda make: make.__name__,
)
def undo_case(request: pytest.FixtureRequest, company: Company, owner: Client) -> UndoCase:
    case: UndoCase = request.param(company, owner)
    return case


def find_undo_path(page: Any) -> str:
    (path,) = _UNDO.findall(page.content.decode())
    return unescape(path)


def count_audit_entries(company: Company) -> int:
    with tenant_scope(company.tenant_id):
        return AuditEntry.objects.count()


def test_undo_restores_the_previous_value_and_is_audited(
    undo_case: UndoCase, company: Company, owner: Client
) -> None:
    before = undo_case.state()
    undo = find_undo_path(undo_case.change(undo_case.values[0]))
    assert undo_case.state() != before
    num_entries = count_audit_entries(company)

    owner.post(undo)

    assert undo_case.state() == before
    assert count_audit_entries(company) == num_entries + 1


def test_undo_reverts_only_the_last_change(undo_case: UndoCase, owner: Client) -> None:
    undo_case.change(undo_case.values[0])
    before = undo_case.state()
    undo = find_undo_path(undo_case.change(undo_case.values[1]))

    owner.post(undo)

    assert undo_case.state() == before


def test_undo_does_not_overwrite_a_later_change(undo_case: UndoCase, owner: Client) -> None:
    undo = find_undo_path(undo_case.change(undo_case.values[0]))
    undo_case.change(undo_case.values[1])
    meanwhile = undo_case.state()

    page = owner.post(undo, follow=True).content.decode()

    assert undo_case.state() == meanwhile
    assert "Not undone" in page


def test_undo_does_not_restore_a_webhook_that_is_no_longer_allowed(
    company: Company, owner: Client, settings: LazySettings
) -> None:
    settings.PRIVATE_TARGETS = [ip_network("127.0.0.0/8")]
    budget = make_budget(company, webhook_url="http://127.0.0.1/hook")
    form = {"limit": "20", "is_hard": "", "webhook_url": "", "version": str(budget.version)}
    undo = find_undo_path(owner.post(f"/budgets/{budget.id}/edit", form, follow=True))
    settings.PRIVATE_TARGETS = []

    page = owner.post(undo, follow=True).content.decode()

    assert "Not undone: the previous values are no longer valid." in page


def test_undo_does_not_restore_a_retention_period_that_is_no_longer_allowed(
    company: Company, owner: Client
) -> None:
    with tenant_scope(company.tenant_id):
        RetentionRule.objects.create(
            tenant_id=company.tenant_id,
            data_class=DataClass.USAGE,
            version=1,
            days=1,
            reason="of an earlier release",
            created_at=timezone.now(),
        )
    form = {"days": "90", "reason": "annex", "expected_version": "1"}
    undo = find_undo_path(
        owner.post(f"/retention/classes/{DataClass.USAGE.value}", form, follow=True)
    )

    page = owner.post(undo, follow=True).content.decode()

    assert "Not undone: the previous values are no longer valid." in page


def test_another_tenant_and_a_developer_cannot_undo_a_change(
    undo_case: UndoCase, company: Company, cast: Cast, sign_in_with_step_up: SignIn
) -> None:
    undo = find_undo_path(undo_case.change(undo_case.values[0]))
    after = undo_case.state()

    sign_in_with_step_up(company.developer).post(undo)
    sign_in_with_step_up(cast.globex.administrator).post(undo)

    assert undo_case.state() == after
