"""The budgets' pages: create, change, delete after a confirmation, and alert recipients."""

import re
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from caret.contracts.pricing import BudgetScope
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.billing.budgets.operations import BudgetTarget, BudgetTerms, change_budget
from tenants.billing.budgets.queries import BudgetView, read_page_of_budgets, read_spending_limits
from tenants.billing.rating.operations import rate_tenant
from tenants.identity.teams.operations import add_team_member
from tenants.security.audit.queries import AuditFilter, list_entries
from tests.fakes.billing import ingest_completion, make_budget, make_old_customer
from tests.fixtures.companies import ACME_PEOPLE, GLOBEX_PEOPLE, Company, make_company
from tests.fixtures.users import make_colleague, make_team
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.queries import few_queries

WRITERS = {Role.OWNER, Role.ADMINISTRATOR, Role.BILLING}
READERS = WRITERS | {Role.AUDITOR}
NEW_BUDGET = {"scope": "tenant", "limit": "1,250.50", "is_hard": "on", "webhook_url": ""}
HOOK = "https://hooks.example/alerts"
pytestmark = pytest.mark.usefixtures("stopped_clock")  # so that no month ends during a test


@pytest.fixture
def company() -> Company:
    return make_old_customer(datetime(2026, 9, 1, tzinfo=UTC))


@pytest.fixture
def bill(company: Company, sign_in_with_step_up: SignIn) -> Client:
    """Return the browser of Bill, who has the billing role."""
    return sign_in_with_step_up(company.people[Role.BILLING])


def list_budgets(company: Company) -> list[BudgetView]:
    actor = company.people[Role.AUDITOR].actor
    return read_page_of_budgets(actor=actor, limit=50, cursor=None, now=timezone.now()).rows


def post_change(client: Client, budget: BudgetView, **fields: str) -> Any:
    form = {"limit": "20", "is_hard": "on", "webhook_url": "", "version": str(budget.version)}
    return client.post(f"/budgets/{budget.id}/edit", form | fields)


def invalid_fields(page: str) -> list[str]:
    return re.findall(r'class="wrong" id="id_(\w+)_error"', page)


@pytest.mark.parametrize("role", list(Role))
def test_auditors_only_read_budgets_and_billing_roles_write_them(
    company: Company, sign_in_with_step_up: SignIn, role: Role
) -> None:
    budget = make_budget(company, webhook_url=HOOK)
    client = sign_in_with_step_up(company.people[role])
    budget_path = f"/budgets/{budget.id}"

    for path in ("/budgets", budget_path):
        assert client.get(path).status_code == (200 if role in READERS else 403)
    for path in ("/budgets/new", f"{budget_path}/delete"):
        assert client.get(path).status_code == (200 if role in WRITERS else 403)
    for path in (f"{budget_path}/edit", f"{budget_path}/secret"):
        assert (client.post(path).status_code == 403) == (role not in WRITERS)
    page = client.get(budget_path).content.decode()
    assert (f"{budget_path}/edit" in page) == (role in WRITERS)


def test_anonymous_visitors_are_redirected_to_sign_in() -> None:
    assert Client().get("/budgets")["Location"].startswith("/sign-in")


def test_a_budget_for_the_tenant_is_created(company: Company, bill: Client) -> None:
    page = bill.post("/budgets/new", NEW_BUDGET, follow=True).content.decode()

    (budget,) = list_budgets(company)
    assert (budget.limit_micros, budget.is_hard, budget.scope) == (1_250_500_000, True, "tenant")
    assert "Budget created. It applies immediately." in page
    assert "€1,250.50" in page


def test_a_budget_that_stops_people_now_is_saved_only_after_a_confirmation(
    company: Company, bill: Client
) -> None:
    """A team of two has spent more than its new limit. One of the two is stopped already."""
    alice, dan = company.people[Role.ADMINISTRATOR], company.developer
    team = make_team(company, "Platform")
    for person in (alice, dan):
        team_id, now = uuid.UUID(team), timezone.now()
        add_team_member(actor=company.platform, team_id=team_id, user_id=person.user_id, now=now)
    ingest_completion(company, dan, now, generated_tokens=2_000_000)  # costs €1.20
    rate_tenant(company.tenant_id, now=timezone.now())
    form = NEW_BUDGET | {"limit": "1"}
    bill.post("/budgets/new", form | {"scope": "user", "person": dan.email, "confirmed_stops": 1})

    page = bill.post("/budgets/new", form | {"scope": "team", "team": team}).content.decode()
    confirmed = form | {"scope": "team", "team": team, "confirmed_stops": "1"}

    assert "This would stop completions for 1 person now." in page
    assert 'name="confirmed_stops" value="1"' in page
    assert len(list_budgets(company)) == 1
    assert bill.post("/budgets/new", confirmed).status_code == 302
    assert len(list_budgets(company)) == 2


def test_a_lower_limit_that_stops_people_asks_for_a_confirmation(
    company: Company, bill: Client
) -> None:
    ingest_completion(company, company.developer, timezone.now(), generated_tokens=50_000)  # €0.03
    rate_tenant(company.tenant_id, now=timezone.now())
    budget = make_budget(company, limit_micros=100_000_000)

    page = post_change(bill, budget, limit="0.01").content.decode()

    assert f"This would stop completions for {len(ACME_PEOPLE)} people now." in page
    (unchanged,) = list_budgets(company)
    assert unchanged.limit_micros == 100_000_000
    assert post_change(bill, budget, limit="0.01", is_hard="").status_code == 302  # stops no user


def test_a_budget_per_seat_grows_with_the_members(company: Company, bill: Client) -> None:
    bill.post("/budgets/new", NEW_BUDGET | {"limit": "10", "is_per_seat": "on"})
    (budget,) = list_budgets(company)
    with tenant_scope(company.tenant_id):
        (gateway_budget,) = read_spending_limits(company.tenant_id, now=timezone.now()).budgets

    make_colleague(company)

    assert budget.month_limit_micros == 10_000_000 * len(ACME_PEOPLE)
    assert gateway_budget.limit_micros == budget.month_limit_micros
    assert list_budgets(company)[0].month_limit_micros == budget.month_limit_micros + 10_000_000
    assert "The limit is €10.00 per seat." in bill.get(f"/budgets/{budget.id}").content.decode()


def test_a_limit_uses_the_number_format_of_the_users_language(
    company: Company, bill: Client
) -> None:
    bill.cookies["caret-language"] = "de"

    bill.post("/budgets/new", NEW_BUDGET | {"limit": "1.250,50"})

    (budget,) = list_budgets(company)
    assert budget.limit_micros == 1_250_500_000
    assert 'value="1250,50"' in bill.get(f"/budgets/{budget.id}").content.decode()


@pytest.mark.parametrize(
    ("language", "limit"),
    [
        *(
            ("de", limit)
            for limit in ("0.375", "1.37", "1.2345", "12.50", "01.250", ".5", "1.250.5")
        ),
        *(("en", limit) for limit in ("0,375", "1,5", "1,2345", "1250,50", "1,250,5")),
    ],
)
def test_a_limit_with_ambiguous_separators_is_refused(
    company: Company, bill: Client, language: str, limit: str
) -> None:
    bill.cookies["caret-language"] = language

    answer = bill.post("/budgets/new", NEW_BUDGET | {"limit": limit})

    assert answer.status_code == 400
    assert answer.context["form"].has_error("limit")
    assert list_budgets(company) == []


def test_teams_and_users_can_have_budgets(company: Company, bill: Client) -> None:
    team = make_team(company, "Platform")

    bill.post("/budgets/new", NEW_BUDGET | {"scope": "team", "team": team, "person": "ignored"})
    bill.post("/budgets/new", NEW_BUDGET | {"scope": "user", "person": company.developer.email})

    holders = {(budget.scope, str(budget.holder_id)) for budget in list_budgets(company)}
    assert holders == {("team", team), ("user", company.developer.user_id)}
    page = bill.get("/budgets").content.decode()
    assert "Platform" in page
    assert company.developer.email in page


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"limit": ""}, "limit"),
        ({"limit": "0"}, "limit"),
        ({"limit": "much"}, "limit"),
        ({"limit": "1,5"}, "limit"),
        ({"limit": "1.0000001"}, "limit"),
        ({"limit": "9" * 30}, "limit"),
        ({"webhook_url": "ftp://hooks.example"}, "webhook_url"),
        ({"scope": "team"}, "team"),
        ({"scope": "team", "team": str(uuid.UUID(int=0))}, "team"),
        ({"scope": "user", "person": "nobody@nowhere.example"}, "person"),
    ],
)
def test_an_invalid_value_gets_an_error_at_its_field(
    company: Company, bill: Client, fields: dict[str, str], field: str
) -> None:
    answer = bill.post("/budgets/new", NEW_BUDGET | {"webhook_url": HOOK} | fields)

    page = answer.content.decode()
    assert answer.status_code == 400
    assert invalid_fields(page) == [field]
    assert f'value="{fields.get("webhook_url", HOOK)}"' in page
    assert list_budgets(company) == []


def test_users_and_teams_of_another_tenant_cannot_get_a_budget(
    company: Company, bill: Client
) -> None:
    hooli = make_company("hooli", GLOBEX_PEOPLE)
    team = make_team(hooli)

    foreign_team = bill.post("/budgets/new", NEW_BUDGET | {"scope": "team", "team": team})
    form = NEW_BUDGET | {"scope": "user", "person": hooli.developer.email}
    foreign_user = bill.post("/budgets/new", form)

    assert (foreign_team.status_code, foreign_user.status_code) == (400, 400)
    assert "This member does not exist." in foreign_user.content.decode()
    assert list_budgets(company) == []


def test_a_second_budget_for_the_same_target_is_refused(company: Company, bill: Client) -> None:
    make_budget(company)

    answer = bill.post("/budgets/new", NEW_BUDGET)

    assert answer.status_code == 400
    assert "This budget already exists." in answer.content.decode()


def test_a_budget_is_changed(company: Company, bill: Client) -> None:
    budget = make_budget(company)

    post_change(bill, budget, limit="20.25", is_hard="", webhook_url=HOOK)

    (changed_budget,) = list_budgets(company)
    assert (changed_budget.limit_micros, changed_budget.is_hard) == (20_250_000, False)
    assert changed_budget.webhook_url == HOOK


def test_a_concurrent_change_is_refused_and_its_input_stays_in_the_form(
    company: Company, bill: Client
) -> None:
    budget = make_budget(company)
    change_budget(
        actor=company.administrator.actor,
        budget_id=budget.id,
        terms=BudgetTerms(5_000_000),
        version=budget.version,
        now=timezone.now(),
    )

    answer = post_change(bill, budget, limit="77")

    page = answer.content.decode()
    assert answer.status_code == 400
    assert "Someone changed this budget while you were editing." in page
    assert 'value="77"' in page
    assert list_budgets(company)[0].limit_micros == 5_000_000


def test_deleting_a_budget_requires_a_step_up(company: Company, sign_in: SignIn) -> None:
    budget = make_budget(company)

    answer = sign_in(company.people[Role.BILLING]).post(
        f"/budgets/{budget.id}/delete", {"version": "1"}
    )

    assert answer["Location"].startswith("/account/confirm?next=")
    assert len(list_budgets(company)) == 1


def test_deleting_a_budget_asks_for_confirmation_and_reports_success(
    company: Company, bill: Client
) -> None:
    budget = make_budget(company)
    path = f"/budgets/{budget.id}/delete"

    confirmation = bill.get(path).content.decode()
    stale = bill.post(path, {"version": "7"}, follow=True).content.decode()
    num_budgets = len(list_budgets(company))
    done = bill.post(path, {"version": "1"}, follow=True).content.decode()

    assert "Delete budget: All users?" in confirmation
    assert "The current version is 1" in stale
    assert num_budgets == 1
    assert "Budget deleted" in done
    assert list_budgets(company) == []


# "\u00b2", a superscript 2, is a digit for str.isdigit, but not for int.
@pytest.mark.parametrize("version", ["9" * 5_000, "-1", "1.5", "\u00b2", "", "\0"])
def test_a_budget_is_not_deleted_with_an_invalid_version(
    company: Company, bill: Client, version: str
) -> None:
    budget = make_budget(company)

    answer = bill.post(f"/budgets/{budget.id}/delete", {"version": version})

    assert answer.status_code == 302
    assert len(list_budgets(company)) == 1


def test_showing_a_webhooks_secret_is_audited(company: Company, bill: Client) -> None:
    budget = make_budget(company, webhook_url=HOOK)
    before = bill.get(f"/budgets/{budget.id}").content.decode()

    secret_page = bill.post(f"/budgets/{budget.id}/secret").content.decode()

    assert "whsec_" not in before
    assert re.search(r"whsec_[\w+/=]+", secret_page) is not None
    entries = list_entries(
        actor=company.people[Role.AUDITOR].actor,
        audit_filter=AuditFilter(action="budget.webhook_secret_read", target=f"budget:{budget.id}"),
        limit=5,
        cursor=None,
        now=timezone.now(),
    )
    assert [str(entry.actor_id) for entry in entries.rows] == [company.people[Role.BILLING].user_id]


def test_the_page_shows_the_recipients_of_alerts(company: Company, bill: Client) -> None:
    holder = BudgetTarget(BudgetScope.USER, uuid.UUID(company.developer.user_id))
    budget = make_budget(company, limit_micros=1_000, holder=holder, is_hard=False)
    now = timezone.now()
    ingest_completion(company, company.developer, now, generated_tokens=10_000)
    rate_tenant(company.tenant_id, now=now)

    page = bill.get(f"/budgets/{budget.id}").content.decode()

    assert page.count("Reported together with a higher threshold") == 2  # 50% and 80%
    for person in (company.developer, company.people[Role.OWNER], company.people[Role.BILLING]):
        assert person.email in page
    assert "Sending" in page
    assert "Exceeded" in page


def test_the_page_states_that_the_rest_is_too_small_for_a_completion(
    company: Company, bill: Client
) -> None:
    budget = make_budget(company, limit_micros=6_500)  # the completion below costs 6,000
    now = timezone.now()
    ingest_completion(company, company.developer, now, generated_tokens=10_000)
    rate_tenant(company.tenant_id, now=now)

    page = bill.get(f"/budgets/{budget.id}").content.decode()

    assert "Completions stopped" in page
    assert "The remaining budget is too small for a completion" in page


@pytest.mark.parametrize("action", ["", "/edit", "/secret", "/delete"])
def test_another_tenants_budget_is_not_found(
    company: Company, sign_in_with_step_up: SignIn, action: str
) -> None:
    budget = make_budget(company)
    bob = sign_in_with_step_up(make_company("hooli", GLOBEX_PEOPLE).administrator)
    fields = {"limit": "1", "version": "1"}

    for budget_id in (budget.id, uuid.uuid4()):
        send = bob.post if action else bob.get
        assert send(f"/budgets/{budget_id}{action}", fields).status_code == 404
    assert [budget.version for budget in list_budgets(company)] == [1]  # unchanged


def test_the_pages_run_few_queries(company: Company, bill: Client) -> None:
    team = make_team(company)
    make_budget(company, holder=BudgetTarget(BudgetScope.TEAM, uuid.UUID(team)))
    budget = make_budget(company)

    for path in (
        "/budgets",
        "/budgets/new",
        f"/budgets/{budget.id}",
        f"/budgets/{budget.id}/delete",
    ):
        with few_queries():
            assert bill.get(path).status_code == 200


def test_a_small_budget_is_shown_with_all_its_decimal_digits(
    company: Company, bill: Client
) -> None:
    make_budget(company, limit_micros=10_500)

    page = bill.get("/budgets").content.decode()

    assert "€0.0105" in page
